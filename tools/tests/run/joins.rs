//! How ranks join a job, and who may look at it: L4, L5, and `tasuki ps`.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{
    Running, TASUKI, conformance_program, environment, rank_program, run_ranks, start_ranks, tasuki_run, user,
};
use rustix::process::Signal;
use std::process::Command;

fn ps(args: &[&str]) -> String {
    let output = Command::new(TASUKI).arg("ps").args(args).output().expect("tasuki ps");
    String::from_utf8(output.stdout).expect("a text")
}

fn socket_of(running: &mut Running) -> String {
    let rank = running.ranks()[0];
    let variables = environment(rank);
    variables
        .iter()
        .find_map(|variable| variable.strip_prefix("TASUKI_JOB_SOCKET="))
        .unwrap_or_default()
        .to_string()
}

#[test]
fn ranks_meet_and_leave() {
    let ended = run_ranks(4, "join meet say:met leave").expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("met\nmet\nmet\nmet\n", ""));
}

#[test]
fn sixty_four_ranks_meet_and_leave() {
    run_ranks(64, "join meet leave").expect(0);
}

#[test]
fn more_ranks_than_one_message_has_descriptors_meet() {
    run_ranks(210, "join leave").expect(0);
}

#[test]
fn a_low_limit_of_open_files_is_raised_for_ranks_that_join_and_no_others() {
    let limited = |rest: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -Sn 50; exec {TASUKI} run -n 60 {rest}")]);
        Running::start(command).wait().expect(0)
    };
    limited(&format!("{} join meet leave", rank_program()));
    assert_eq!(limited("sh -c 'ulimit -n'").out, "50\n".repeat(60));
}

/// The processor time that a process has used, in hundredths of a second.
fn processor_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

#[test]
fn a_launcher_without_free_descriptors_sleeps_until_it_has_some() {
    const LIMIT: usize = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    let steps = format!("join say:ready until:{} leave", go.display());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {LIMIT}; exec {TASUKI} run -n 1 {} {steps}", rank_program())]);
    let mut running = Running::start(command);
    running.until("ready", |running| running.out().contains("ready"));
    let socket = socket_of(&mut running);
    let connections: Vec<_> =
        (0..LIMIT).map(|_| tasuki_core::os::socket::connect(&socket).expect("a place to wait")).collect();
    running.until("reported", |running| running.err().contains("cannot be accepted: Too many open files"));
    let launcher = running.pid();
    let before = processor_time(launcher);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let used = processor_time(launcher) - before;
    assert!(used < 20, "{used} hundredths of a second in 3 s");
    drop(connections);
    let job = format!("job {}:", socket.rsplit('-').next().expect("its name"));
    running.until("shown", |_| ps(&[]).contains(&job));
    std::fs::write(&go, "").expect("a file");
    let ended = running.wait().expect(0);
    assert_eq!(ended.messages().len(), 1, "it is said once: {}", ended.err);
}

#[test]
fn another_launcher_s_variables_mean_nothing_to_ranks_of_ours() {
    let mut command = tasuki_run(&["-n", "2", rank_program(), "join", "meet", "leave"]);
    command.env("OMPI_COMM_WORLD_SIZE", "4");
    Running::start(command).wait().expect(0);
    let alone = Command::new(rank_program()).arg("join").env("OMPI_COMM_WORLD_SIZE", "4").output();
    let said = String::from_utf8(alone.unwrap().stderr).unwrap();
    assert!(said.contains("Open MPI's mpiexec started 4 copies"), "{said}");
}

#[test]
fn a_copy_that_something_else_started_several_times_is_no_job_of_one() {
    let alone = |variable: &str, number: &str| {
        let mut command = Command::new(conformance_program());
        let output = command.arg("zero_counts_move_nothing").env(variable, number).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for variable in ["PMIX_RANK", "SLURM_PROCID"] {
        let (code, said) = alone(variable, "0");
        assert_eq!(code, Some(0), "it may be the only one: {said}");
        assert!(said.contains("a job of one rank") && said.contains(&format!("{variable}=0")), "{said}");
        let (code, said) = alone(variable, "2");
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains(&format!("{variable}=2")) && said.contains("tasuki run -n N PROGRAM"),
            "{said}"
        );
    }
    // A launcher that speaks PMI-1, but the variable that names its connection got lost.
    let mut command = Command::new(conformance_program());
    command.arg("zero_counts_move_nothing").env("PMI_RANK", "1").env("PMI_SIZE", "2").env_remove("PMI_FD");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("a job of one rank") && said.contains("PMI_SIZE=2"), "{said}");
    // The launcher's ranks are a job of their own, whatever started the launcher.
    let mut command = tasuki_run(&["-n", "2", rank_program(), "join", "meet", "leave"]);
    command.env("PMIX_RANK", "1").env("SLURM_PROCID", "1");
    Running::start(command).wait().expect(0);
}

#[test]
fn one_rank_is_a_job_too() {
    run_ranks(1, "join meet leave").expect(0);
}

#[test]
fn two_jobs_at_once_do_not_meet() {
    let jobs: Vec<Running> = (0..4).map(|_| start_ranks(3, "join meet sleep:50 leave")).collect();
    for job in jobs {
        assert_eq!(job.wait().expect(0).err, "");
    }
}

#[test]
fn a_rank_joins_once() {
    let script = format!("{0} join leave && {0} join leave", rank_program());
    let ended = Running::start(tasuki_run(&["-n", "2", "sh", "-c", &script])).wait().expect(1);
    assert!(ended.err.contains("has joined already, as process"), "{}", ended.err);
}

#[test]
fn a_shell_around_the_program_is_no_hindrance() {
    let script = format!("{} join meet leave; echo after", rank_program());
    let ended = Running::start(tasuki_run(&["-n", "2", "sh", "-c", &script])).wait().expect(0);
    assert_eq!(ended.out, "after\nafter\n");
}

#[test]
fn programs_that_never_join_share_a_job_with_nobody() {
    run_ranks(3, "exit:0").expect(0);
}

#[test]
fn ps_shows_who_waits_for_what() {
    let mut running = start_ranks(3, "join meet @1:hold wait");
    running.until_ranks_run(3);
    running.until("shown", |running| {
        let socket = socket_of(running);
        let Some(job) = socket.rsplit('-').next().filter(|job| !job.is_empty()) else { return false };
        let table = ps(&[]);
        let ours =
            table.split("\n\n").chain([table.as_str()]).find(|block| block.contains(&format!("job {job}:")));
        let Some(ours) = ours else { return false };
        ours.matches("wait(signal 7 >= 4)").count() == 2 && ours.contains("sleeping")
    });
    let launcher = running.pid();
    let all: serde_json::Value = serde_json::from_str(&ps(&["--json"])).unwrap();
    let job = all.as_array().unwrap().iter().find(|job| job["launcher"] == launcher).unwrap();
    let ranks = job["ranks"].as_array().unwrap();
    assert_eq!((ranks.len(), &ranks[2]["waits_in"]), (3, &"wait(signal 7 >= 4)".into()));
    assert!(ranks[2]["waited_s"].as_f64().unwrap() > 0.0 && ranks[1].get("waits_in").is_none());
    running.signal(Signal::TERM);
    running.wait().expect(143);
}

#[test]
fn another_user_cannot_join_or_read() {
    if user() != 0 {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let mut running = start_ranks(2, "@0:join hold");
    running.until_ranks_run(2);
    let variables = environment(running.ranks()[1]);
    let ours = variables.iter().filter(|variable| variable.starts_with("TASUKI_"));
    // The example, copied to a place from which everybody may start it, with the job's own key.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rank");
    std::fs::copy(rank_program(), &program).unwrap();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), readable).unwrap();
    let script = format!("{} {} join", ours.cloned().collect::<Vec<_>>().join(" "), program.display());
    let stranger = Command::new("su").args(["nobody", "-s", "/bin/sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(!stranger.status.success());
    assert!(said.contains("the job belongs to user 0; this process acts as user"), "{said}");
    running.signal(Signal::TERM);
    running.wait().expect(143);
}

#[test]
fn ranks_as_threads_are_one_process_with_their_number_in_its_environment() {
    let script = "echo $TASUKI_THREADS $TASUKI_RANK $TASUKI_FABRIC $TASUKI_SEED.";
    let ended = Running::start(tasuki_run(&["-n", "3", "--threads", "sh", "-c", script])).wait().expect(0);
    assert_eq!(ended.out, "3 .\n");
    let args = ["-n", "3", "--fabric", "sim", "--seed", "7", "sh", "-c", script];
    assert_eq!(Running::start(tasuki_run(&args)).wait().expect(0).out, "3 sim 7.\n");
    let died = Running::start(tasuki_run(&["-n", "3", "--threads", "sh", "-c", "exit 4"])).wait().expect(4);
    assert!(died.err.contains("the process of ranks 0-2 died: exit code 4"), "{}", died.err);
}

/// Ranks are not bound even if they occupy all processors: all threads of a bound rank would share
/// one processor.
#[test]
fn unasked_each_rank_may_use_all_processors() {
    let ranks = tasuki_core::os::affinity::allowed().len();
    let list = "grep Cpus_allowed_list /proc/self/status | cut -f 2";
    let ours = Command::new("sh").args(["-c", list]).output().expect("a list of processors");
    let ended = Running::start(tasuki_run(&["-n", &ranks.to_string(), "sh", "-c", list])).wait().expect(0);
    assert_eq!(ended.out, String::from_utf8_lossy(&ours.stdout).repeat(ranks));
}

#[test]
fn ranks_are_bound_as_asked() {
    let allowed = tasuki_core::os::affinity::allowed();
    let last = allowed[allowed.len() - 1];
    let list = format!("{last},{},{last}", allowed[0]);
    let script = "echo $TASUKI_RANK $(grep Cpus_allowed_list /proc/self/status | cut -f 2)";
    let ended =
        Running::start(tasuki_run(&["-n", "3", "--bind", &list, "sh", "-c", script])).wait().expect(0);
    let expected = [format!("0 {last}"), format!("1 {}", allowed[0]), format!("2 {last}")];
    assert_eq!(ended.lines(), expected);
}
