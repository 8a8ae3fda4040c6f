//! Starts the built `tasuki` under a watchdog, reads its output, and checks what it leaves behind.
#![allow(dead_code)] // each test file uses a part of this module

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// After this long something hangs. No test asserts how long it took.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// The command under test.
pub(crate) const TASUKI: &str = env!("CARGO_BIN_EXE_tasuki");

/// Shows in the environment of everything that a test starts.
const MARK: &str = "LAUNCHER_TEST_MARK";

/// The program whose ranks do what their arguments say: core's example `scripted_rank`, built
/// beside the command.
pub(crate) fn rank_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        built(&["--package", "tasuki-core", "--example", "scripted_rank"], "examples/scripted_rank")
    })
}

/// The program whose ranks exchange messages for ever: one of the conformance suite's.
pub(crate) fn ranks_that_exchange_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| built(&["--workspace", "--bin", "ranks_that_exchange"], "ranks_that_exchange"))
}

/// The program that runs a case of the conformance suite, by name.
pub(crate) fn conformance_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| built(&["--workspace", "--bin", "conformance"], "conformance"))
}

/// The program whose ranks have something in their command queues: one of the conformance suite's.
pub(crate) fn ranks_with_queued_commands_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        built(&["--workspace", "--bin", "ranks_with_queued_commands"], "ranks_with_queued_commands")
    })
}

/// The program whose ranks wait in each kind of call: one of the conformance suite's.
pub(crate) fn ranks_that_block_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| built(&["--workspace", "--bin", "ranks_that_block"], "ranks_that_block"))
}

/// The program in which one rank is killed at work: one of the conformance suite's.
pub(crate) fn ranks_that_die_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| built(&["--workspace", "--bin", "ranks_that_die"], "ranks_that_die"))
}

/// The program whose ranks end in ways in which no rank should: one of the conformance suite's.
pub(crate) fn ranks_that_exit_wrongly_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        built(&["--workspace", "--bin", "ranks_that_exit_wrongly"], "ranks_that_exit_wrongly")
    })
}

/// The program in which one rank fails in the way that its argument names: one of the conformance
/// suite's.
pub(crate) fn ranks_that_fail_program() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| built(&["--workspace", "--bin", "ranks_that_fail"], "ranks_that_fail"))
}

/// Builds another package's program, for `cargo test` builds those of its own only; its path.
fn built(what: &[&str], place: &str) -> String {
    let profile = Path::new(TASUKI).parent().expect("the command lies in a folder");
    let is_built = std::env::var_os("TEST_PROGRAMS_BUILT").is_some(); // by `cargo xtask test`
    if let (Ok(cargo), false) = (std::env::var("CARGO"), is_built) {
        build(&cargo, profile, what);
    }
    let path = profile.join(place);
    assert!(path.exists(), "{} is missing", path.display());
    path.to_str().expect("a path in Unicode").to_string()
}

fn build(cargo: &str, profile: &Path, what: &[&str]) {
    let mut folder = profile.parent().expect("the profile's folder lies in the target's").to_path_buf();
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--offline"]).args(what);
    if profile.ends_with("release") {
        command.arg("--release");
    }
    if let Some(triple) =
        folder.file_name().and_then(|name| name.to_str()).filter(|name| name.contains("-linux-"))
    {
        command.args(["--target", triple]);
        folder.pop();
    }
    let status = command.arg("--target-dir").arg(folder).status().expect("cargo");
    assert!(status.success(), "{what:?} does not build");
}

/// A command that is running.
pub(crate) struct Running {
    child: Option<Child>,
    mark: String,
    out: CapturedStream,
    err: CapturedStream,
}

/// What one of its streams has said so far.
struct CapturedStream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Its exit code; a signal's number is no code.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("killed by signal {:?}", self.status.signal()))
    }

    /// Its exit code. Prints the output if the code is wrong.
    pub(crate) fn expect(self, code: i32) -> Ended {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }

    /// The messages of the launcher itself.
    pub(crate) fn messages(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("tasuki: ")).collect()
    }

    /// The lines of standard output, sorted: ranks write in any order.
    pub(crate) fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.out.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// `tasuki run` with these arguments.
pub(crate) fn tasuki_run(args: &[&str]) -> Command {
    let mut command = Command::new(TASUKI);
    command.arg("run").args(args).stdin(Stdio::null());
    command
}

/// Runs `tasuki run` to its end, and makes sure that nothing of it is left.
pub(crate) fn run(args: &[&str]) -> Ended {
    Running::start(tasuki_run(args)).wait()
}

/// Runs the program `rank` with these steps, each a word, on that many ranks.
pub(crate) fn run_ranks(count: usize, steps: &str) -> Ended {
    start_ranks(count, steps).wait()
}

/// Starts the program `rank`.
pub(crate) fn start_ranks(count: usize, steps: &str) -> Running {
    let mut command = tasuki_run(&["-n", &count.to_string(), rank_program()]);
    command.args(steps.split_whitespace());
    Running::start(command)
}

impl Running {
    /// Starts a command and captures its output.
    pub(crate) fn start(mut command: Command) -> Running {
        command.stdout(Stdio::piped());
        Running::start_writing(command)
    }

    /// Starts a command whose standard output may go elsewhere.
    pub(crate) fn start_writing(mut command: Command) -> Running {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        command.env(MARK, &mark).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command");
        let out =
            child.stdout.take().map_or_else(|| CapturedStream::new(std::io::empty()), CapturedStream::new);
        let err = CapturedStream::new(child.stderr.take().expect("piped"));
        Running { child: Some(child), mark, out, err }
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("it has not been waited for")
    }

    /// The launcher's process.
    pub(crate) fn pid(&mut self) -> u32 {
        self.child().id()
    }

    /// Sends a signal to the launcher.
    pub(crate) fn signal(&mut self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Writes to its standard input, and closes it.
    pub(crate) fn feed(&mut self, text: &str) {
        self.child().stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    }

    /// What it has written to standard output so far.
    pub(crate) fn out(&self) -> String {
        self.out.now()
    }

    /// What it has written to standard error so far.
    pub(crate) fn err(&self) -> String {
        self.err.now()
    }

    /// The processes that the launcher started itself, in order. The first one is the keeper.
    pub(crate) fn children(&mut self) -> Vec<u32> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// The processes that are ranks, as long as the first keeper lives.
    pub(crate) fn ranks(&mut self) -> Vec<u32> {
        self.children().into_iter().skip(1).collect()
    }

    /// Waits until `count` ranks run their program; before that, they show the launcher's
    /// environment or none.
    pub(crate) fn until_ranks_run(&mut self, count: usize) {
        let runs =
            |rank: u32| environment(rank).iter().any(|variable| variable.starts_with("TASUKI_JOB_SOCKET="));
        self.until("ranks that run", |running| {
            let ranks = running.ranks();
            ranks.len() >= count && ranks.into_iter().all(runs)
        });
    }

    /// All processes that carry this run's mark.
    pub(crate) fn marked(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.mark);
        processes().filter(|pid| environment(*pid).contains(&mark)).collect()
    }

    /// Waits until a condition holds.
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Running) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < WATCHDOG, "never {what}; it said: {} {}", self.out(), self.err());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until it has ended and none of its processes is left.
    pub(crate) fn wait(mut self) -> Ended {
        let start = Instant::now();
        let mut child = self.child.take().expect("it is waited for once");
        let status = loop {
            match child.try_wait().expect("it is our child") {
                Some(status) => break status,
                None if start.elapsed() > WATCHDOG => {
                    let _ = child.kill();
                    let _ = child.wait();
                    panic!("it hangs; it said: {} {}", self.out(), self.err());
                }
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        self.assert_nothing_left();
        let (out, err) = (self.out.end(), self.err.end());
        Ended { status, out, err }
    }

    /// The keeper ends the processes of a killed launcher a moment later. A launcher that ends by
    /// itself leaves none at any time.
    fn assert_nothing_left(&self) {
        let start = Instant::now();
        loop {
            let left = self.marked();
            if left.is_empty() {
                break;
            }
            let shown: Vec<String> =
                left.iter().map(|pid| format!("{pid} ({})", command_line(*pid))).collect();
            assert!(start.elapsed() < WATCHDOG, "processes are left: {shown:?}; it said {}", self.err());
            thread::sleep(Duration::from_millis(1));
        }
        for folder in ["/dev/shm", "/tmp"] {
            let left: Vec<PathBuf> =
                fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
            let ours =
                left.iter().filter(|path| path.to_string_lossy().contains(&format!("tasuki-{}-", user())));
            assert_eq!(ours.count(), 0, "files are left in {folder}");
        }
    }
}

/// A test that fails leaves nothing running.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl CapturedStream {
    fn new(mut from: impl Read + Send + 'static) -> CapturedStream {
        let text = Arc::new(Mutex::new(Vec::new()));
        let to = text.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock().expect("nobody panics with it").extend_from_slice(&bytes[..count]);
            }
        });
        CapturedStream { text, reader: Some(reader) }
    }

    fn now(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("nobody panics with it")).into_owned()
    }

    fn end(&mut self) -> String {
        self.reader.take().expect("once").join().expect("it only reads");
        self.now()
    }
}

/// Sends a signal to a process that a test knows of.
pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("no process has number 0");
    let _ = kill_process(pid, signal);
}

/// The user whose jobs the tests start.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The command line of a process, with blanks between its words.
pub(crate) fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim().to_string()
}

/// Returns true if there is a local socket whose name contains `name`.
pub(crate) fn has_socket(name: &str) -> bool {
    fs::read_to_string("/proc/net/unix").expect("the kernel's list of sockets").contains(name)
}

/// The variables of a process; none of one that has ended.
pub(crate) fn environment(pid: u32) -> Vec<String> {
    let all = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    all.split(|&byte| byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned()).collect()
}
