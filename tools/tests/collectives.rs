//! Which algorithms plans take: what `tasuki info` shows, what forces others, and what happens if
//! members disagree.

mod launcher;

use launcher::{Ended, Running, TASUKI, conformance_program, tasuki_run};
use serde_json::Value;
use std::process::Command;

/// A case that makes plans of broadcasts and checks their results.
const CASE: &str = "j1_each_start_delivers_its_own_values";
/// A case that makes plans of all kinds and ends soon.
const SHORT_CASE: &str = "j4_plans_of_one_rank_or_of_no_values";

fn info(args: &[&str], forced: &str) -> Ended {
    let mut command = Command::new(TASUKI);
    command.args(["info", "--collectives"]).args(args);
    // A tuning file of the user would change the output.
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("TASUKI_COLLECTIVES", forced);
    Running::start(command).wait()
}

#[test]
fn what_would_be_chosen_is_shown() {
    for ranks in ["1", "4", "1000"] {
        let table = info(&["--ranks", ranks], "").expect(0).out;
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        for word in ["bcast", "8 KiB", "neighbours", "built-in", "hand-over"] {
            assert!(table.contains(word), "{word}: {table}");
        }
    }
    let output: Value = serde_json::from_str(&info(&["-n", "4", "--json"], "").expect(0).out).expect("JSON");
    let choices = output["choices"].as_array().expect("an array");
    assert_eq!((output["ranks"].as_u64(), choices.len()), (Some(4), 1 + 11 * 4));
    for choice in choices {
        assert!(choice["estimate_ns"].as_u64().is_some() && choice["is_forced"] == false, "{choice}");
    }
}

#[test]
fn what_is_forced_is_shown_where_it_fits() {
    let chosen = |ranks: &str| {
        let output =
            info(&["--ranks", ranks, "--json"], "allgather=recursive doubling,bcast=chain").expect(0);
        let output: Value = serde_json::from_str(&output.out).expect("JSON");
        let choices = output["choices"].as_array().expect("an array").clone();
        let of = |collective: &str| {
            let one = choices.iter().find(|one| one["collective"] == collective).expect("it is there");
            (one["algorithm"].as_str().expect("a name").to_string(), one["is_forced"] == true)
        };
        (of("bcast"), of("allgather"))
    };
    assert_eq!(chosen("8"), (("chain".into(), true), ("recursive-doubling".into(), true)));
    let (_, (algorithm, is_forced)) = chosen("6");
    assert!(algorithm != "recursive-doubling" && !is_forced, "no power of two");
    assert!(info(&["--ranks", "8"], "bcast=chain").expect(0).out.contains("chain*"));
}

#[test]
fn what_there_is_not_is_misuse_that_names_what_there_is() {
    let text = info(&[], "bcast=chian").expect(2).err;
    assert!(text.contains("TASUKI_COLLECTIVES=bcast=chian") && text.contains("'chain'"), "{text}");
    let mut command = tasuki_run(&["-n", "2", "true"]);
    command.env("TASUKI_COLLECTIVES", "barier=central");
    let text = Running::start(command).wait().expect(2).err;
    assert!(text.contains("'barrier'") && text.contains("reduce_scatter"), "{text}");
    let text = launcher::run(&["-n", "2", "--collectives", "barrier=tree", "true"]).expect(2).err;
    assert!(text.contains("choose from dissemination, central"), "{text}");
    let text = info(&["--ranks", "0"], "").expect(2).err;
    assert!(text.contains("1 to"), "{text}");
}

#[test]
fn plans_do_what_they_should_by_what_is_forced() {
    let ways = ["--fabric=shm", "--fabric=sim", "--threads"];
    for (algorithm, way) in ["scatter+allgather", "staged", "trinaryx3 bucket"].into_iter().zip(ways) {
        let forced = format!("bcast={algorithm}");
        launcher::run(&["-n", "2", way, "--collectives", &forced, conformance_program(), CASE]).expect(0);
    }
}

/// A job in which rank 1 has another value of a variable.
fn disagree(variable: &str, value: &str) -> Ended {
    let program = conformance_program();
    let script =
        format!("if [ $TASUKI_RANK = 1 ]; then export {variable}={value}; fi; exec {program} {SHORT_CASE}");
    launcher::run(&["-n", "3", "--timeout", "50s", "sh", "-c", &script])
}

#[test]
fn members_with_other_costs_choose_alike() {
    disagree("TASUKI_COST_PARAMETERS", "turn_ns=1,step_ns=100000").expect(0);
}

#[test]
fn members_with_other_forced_algorithms_get_an_error() {
    let ended = disagree("TASUKI_COLLECTIVES", "bcast=chain").expect(1);
    let text = "members 0 and 1 have different TASUKI_COLLECTIVES";
    assert!(ended.err.contains(text), "{}", ended.err);
}

#[test]
fn a_rank_with_invalid_cost_parameters_reports_them() {
    let ended = disagree("TASUKI_COST_PARAMETERS", "turns=1").expect(1);
    assert!(ended.err.contains("TASUKI_COST_PARAMETERS=turns=1: there is no cost 'turns'"), "{}", ended.err);
}
