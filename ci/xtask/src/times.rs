//! Wall and processor time of stages, crates, test binaries and tests, as a table of Markdown.
//!
//! `ci/test` writes the times of its stages, `cargo xtask test` those of test binaries and tests, and cargo those of compilation
//! (`--timings`). This module reads the existing tables; they do not affect verdicts.

use std::fs;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::error::ChoreError;

/// The number of tests in the table.
const MAX_LISTED_TESTS: usize = 50;
/// The number of compilation units in the table.
const MAX_LISTED_UNITS: usize = 30;

/// The times of one test binary, in seconds.
pub struct BinaryTime {
    pub name: String,
    pub wall: f64,
    /// User and system time, with that of programs the tests started and waited for; absent on systems that do not report it.
    pub processor: Option<f64>,
    pub tests: usize,
}

/// The wall time of one test, in seconds, with other tests running.
pub struct TestTime {
    binary: String,
    name: String,
    wall: f64,
}

impl TestTime {
    /// Reads a line of the test harness, as in `test name ... ok <1.234s>`.
    pub fn parse(binary: &str, line: &str) -> Option<TestTime> {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let (_, time) = rest.split_once('<')?;
        let wall = time.split_once("s>")?.0.parse().ok()?;
        Some(TestTime { binary: binary.to_owned(), name: name.to_owned(), wall })
    }
}

/// Returns the count before a word in a line `test result: ok. 3 passed; 0 failed; …`, and 0 for other lines.
pub fn parse_count(line: &str, word: &str) -> usize {
    let Some(counts) = line.strip_prefix("test result: ") else { return 0 };
    let count = counts.split(['.', ';']).find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok());
    count.unwrap_or(0)
}

/// Returns the user and system time of a child process and of the processes it waited for, once it has ended; it stays to be
/// waited for.
#[cfg(target_os = "linux")]
pub fn processor_time_at_exit(process: u32) -> Option<Duration> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let pid = Pid::from_raw(i32::try_from(process).ok()?)?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Fields 14 to 17 of proc(5); the second, the name in parentheses, may contain spaces.
    let ticks: u64 = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    let second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(ticks.saturating_mul(1000).checked_div(second)?))
}

/// Other systems do not report it without a call that is unsafe.
#[cfg(not(target_os = "linux"))]
pub fn processor_time_at_exit(_: u32) -> Option<Duration> {
    None
}

/// Returns the text of a file that others wrote to through duplicates of this handle.
pub fn read_from_start(mut file: fs::File) -> std::io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the folder of the tables of the last run.
pub fn times_folder(root: &Path) -> PathBuf {
    target_folder(root).join("times")
}

fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

pub fn write_tables(folder: &Path, binaries: &[BinaryTime], tests: &[TestTime]) -> Result<(), ChoreError> {
    let row = |time: &BinaryTime| {
        let processor = time.processor.map_or_else(String::new, |time| format!("{time:.2}"));
        format!("{}\t{:.2}\t{processor}\t{}\n", time.name, time.wall, time.tests)
    };
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|source| ChoreError::Write { path, source })
    };
    fs::create_dir_all(folder).map_err(|source| ChoreError::Write { path: folder.to_owned(), source })?;
    write("binaries.tsv", binaries.iter().map(row).collect())?;
    let row = |time: &TestTime| format!("{}\t{}\t{:.2}\n", time.binary, time.name, time.wall);
    write("tests.tsv", tests.iter().map(row).collect())
}

/// Returns the rows of a table, split into fields; none if there is no table.
fn read_rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Returns the test binaries of the last run.
pub fn read_binaries(folder: &Path) -> Vec<BinaryTime> {
    let binary = |row: Vec<String>| match &row[..] {
        [name, wall, processor, tests] => Some(BinaryTime {
            name: name.clone(),
            wall: wall.parse().ok()?,
            processor: processor.parse().ok(),
            tests: tests.parse().ok()?,
        }),
        _ => None,
    };
    read_rows(&folder.join("binaries.tsv")).into_iter().filter_map(binary).collect()
}

/// Prints the tables of the last run.
pub fn run(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    let folder = times_folder(root);
    let (mut stages, mut binaries) = (read_rows(&folder.join("stages.tsv")), read_binaries(&folder));
    if stages.is_empty() && binaries.is_empty() {
        return Err(ChoreError::NoTimes);
    }
    stages.retain(|row| row.len() == 3);
    if !stages.is_empty() {
        println!("| stage | wall (s) | processor (s) |\n|---|---|---|");
        stages.iter().for_each(|row| println!("| {} |", row.join(" | ")));
        println!();
    }
    let units = read_compilation(&target_folder(root).join("cargo-timings/cargo-timing.html"));
    if !units.is_empty() {
        let all: f64 = units.iter().map(|unit| unit.duration).sum();
        println!("| compilation of {} units, {all:.0} s in all | wall (s) |\n|---|---|", units.len());
        for unit in units.iter().take(MAX_LISTED_UNITS) {
            println!("| {} {}{} | {:.1} |", unit.name, unit.version, unit.target, unit.duration);
        }
        println!();
    }
    binaries.sort_by(|one, other| other.wall.total_cmp(&one.wall));
    println!("| test binary | tests | wall (s) | processor (s) |\n|---|---|---|---|");
    for time in &binaries {
        let processor = time.processor.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
        println!("| {} | {} | {:.1} | {processor} |", time.name, time.tests, time.wall);
    }
    let mut tests: Vec<(f64, String)> = read_rows(&folder.join("tests.tsv"))
        .into_iter()
        .filter_map(|row| Some((row.get(2)?.parse().ok()?, format!("`{}` of {}", row.get(1)?, row.first()?))))
        .collect();
    tests.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("\n| test | wall (s) |\n|---|---|");
    tests.iter().take(MAX_LISTED_TESTS).for_each(|(wall, name)| println!("| {name} | {wall:.1} |"));
    Ok(())
}

/// A compilation unit in cargo's report.
#[derive(Deserialize)]
struct CompilationUnit {
    name: String,
    version: String,
    target: String,
    duration: f64,
}

/// Returns the units of a report that `cargo --timings` wrote, slowest first; none if there is no report.
fn read_compilation(path: &Path) -> Vec<CompilationUnit> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let data = text.split_once("const UNIT_DATA = ").and_then(|(_, rest)| rest.split_once(";\n"));
    let mut units: Vec<CompilationUnit> =
        data.and_then(|(data, _)| serde_json::from_str(data).ok()).unwrap_or_default();
    units.sort_by(|one, other| other.duration.total_cmp(&one.duration));
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_test_harness_have_a_name_and_a_time() {
        let time = TestTime::parse("model all", "test corpus::own_corpus ... ok <1.250s>");
        let time = time.map(|time| (time.name, time.wall));
        assert_eq!(time, Some(("corpus::own_corpus".to_owned(), 1.25)));
        assert!(
            TestTime::parse("model all", "test result: ok. 3 passed; 0 failed; finished in 1.00s").is_none()
        );
    }

    #[test]
    fn results_have_counts() {
        let line = "test result: FAILED. 257 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 529.36s";
        assert_eq!((parse_count(line, "passed"), parse_count(line, "failed")), (257, 1));
        assert_eq!(parse_count("257 passed", "passed"), 0);
    }

    #[test]
    fn tables_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let binaries = [("model all", Some(2.5)), ("sim lib", None)].map(|(name, processor)| BinaryTime {
            name: name.to_owned(),
            wall: 1.25,
            processor,
            tests: 3,
        });
        write_tables(folder.path(), &binaries, &[]).unwrap();
        let read =
            read_binaries(folder.path()).into_iter().map(|time| (time.name, time.wall, time.processor));
        let expected = binaries.into_iter().map(|time| (time.name, time.wall, time.processor));
        assert!(read.eq(expected));
    }
}
