//! Runs that are killed at random times: recorded verdicts survive, and after `--resume` the results equal
//! those of an uninterrupted run. Tests kill a few times, `ci/soak` hundreds of times.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Ran, software_drivers, vk_litmus};

/// Returns the number of kills: `here` in tests, `soak` in `ci/soak`.
fn times(here: u32, soak: u32) -> u32 {
    if std::env::var_os("VK_LITMUS_SOAK").is_some() { soak } else { here }
}

fn run(folder: &Path, device: &str, out: &str) -> Command {
    let mut command =
        vk_litmus(["run", "mp/MP+r*", "--device", device, "--seed", "1", "-q", "--format", "csv"]);
    command.args(["--instances", "400", "--resume", "--out", out]).current_dir(folder);
    command
}

/// Kills a run by a signal after a delay, and resumes it. Returns the journal before and after, and the exit
/// status.
fn kill_and_resume(
    folder: &Path,
    device: &str,
    out: &str,
    signal: &str,
    after: Duration,
) -> (String, String, Ran) {
    let mut child = run(folder, device, out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    // The run may have ended already.
    let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    child.wait().unwrap();
    let journal = || std::fs::read_to_string(folder.join(out).join("run.jsonl")).unwrap_or_default();
    let before = journal();
    let ran = Ran::run(&mut run(folder, device, out));
    (before, journal(), ran)
}

/// Returns true if all complete lines of a journal are still present.
fn keeps_lines(before: &str, after: &str) -> bool {
    let complete = before.rfind('\n').map_or("", |end| &before[..=end]);
    after.starts_with(complete)
}

#[test]
fn killed_and_resumed_runs_have_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let since = std::time::Instant::now();
    let uninterrupted = Ran::run(&mut run(folder.path(), "sim", "whole"));
    let took = since.elapsed();
    assert_eq!(uninterrupted.code, 0, "{uninterrupted:?}");
    let table = |out: &str| std::fs::read_to_string(folder.path().join(out).join("outcomes.csv")).unwrap();
    let count = times(10, 300);
    for signal in ["-KILL", "-TERM"] {
        for number in 0..count {
            let out = format!("out{signal}-{number}");
            let after = took.mul_f64(1.1 * f64::from(number) / f64::from(count));
            let (before, now, ran) = kill_and_resume(folder.path(), "sim", &out, signal, after);
            assert_eq!(ran.code, 0, "{signal} after {after:?}: {ran:?}");
            assert!(keeps_lines(&before, &now), "{signal} after {after:?}: {before}\n{now}");
            assert_eq!(table(&out), table("whole"), "{signal} after {after:?}");
            assert_eq!(ran.stdout, uninterrupted.stdout, "{signal} after {after:?}");
            std::fs::remove_dir_all(folder.path().join(&out)).unwrap();
        }
    }
}

#[test]
fn killed_and_resumed_driver_runs_have_one_verdict_per_test() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let since = std::time::Instant::now();
    let uninterrupted = Ran::run(&mut run(folder.path(), driver, "whole"));
    let took = since.elapsed();
    let tests = results::read::read_results(&folder.path().join("whole")).unwrap().lines.len();
    assert!(uninterrupted.code != 2 && tests > 3, "{uninterrupted:?}");
    let count = times(4, 60);
    for number in 0..count {
        let out = format!("out-{number}");
        let after = took.mul_f64(f64::from(number + 1) / f64::from(count + 1));
        let (before, now, ran) = kill_and_resume(folder.path(), driver, &out, "-KILL", after);
        assert!(keeps_lines(&before, &now), "after {after:?}: {ran:?}");
        let found = results::read::read_results(&folder.path().join(&out)).unwrap();
        assert_eq!((found.lines.len(), found.count_missing(), found.incomplete), (tests, 0, None), "{ran:?}");
    }
}
