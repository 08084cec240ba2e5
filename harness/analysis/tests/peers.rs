//! The modules of Dartagnan, if `VK_LITMUS_CORPORA` has them; otherwise a skip is printed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use entry_point::AnalysisOptions;
use litmus::Race;
use model::progress::{Fairness, ProgressLimits, ProgressModel, check_termination};
use model::{Budget, Model};
use symbolic::ModelQuery;

fn dartagnan_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("VK_LITMUS_CORPORA").map(|corpora| Path::new(&corpora).join("dat3m-spirv"));
    let found = folder.filter(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped 1: VK_LITMUS_CORPORA has no dat3m-spirv");
    }
    found
}

fn find_texts(folder: &Path) -> Vec<PathBuf> {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "spvasm") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The assembler emits the same words as SPIRV-Tools, and the module can be read.
#[test]
fn assembled_words_equal_those_of_spirv_as() {
    let Some(folder) = dartagnan_folder() else { return };
    let witness = Command::new("spirv-as").arg("--version").output().is_ok();
    let (mut compared, mut refused) = (0, Vec::new());
    let mut differ = Vec::new();
    for path in find_texts(&folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        let assembled_words = match spirv_reader::assemble_text(&text) {
            Ok(assembled) => assembled.words,
            Err(refusal) => {
                differ.push(format!("{}:{refusal}", path.display()));
                continue;
            }
        };
        if let Err(refusal) = entry_point::read_module(text.as_bytes()) {
            differ.push(format!("{}:{refusal}", path.display()));
        }
        if !witness {
            continue;
        }
        let output =
            Command::new("spirv-as").args(["--target-env", "spv1.6", "-o", "-"]).arg(&path).output().unwrap();
        if !output.status.success() {
            refused.push(path);
            continue;
        }
        let reference_words: Vec<u32> =
            output.stdout.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        compared += 1;
        if assembled_words[5..] != reference_words[5..] {
            let at = assembled_words[5..].iter().zip(&reference_words[5..]).position(|(a, b)| a != b);
            differ.push(format!("{}: word {at:?}", path.display()));
        }
    }
    println!("{compared} compared, {} refused by spirv-as", refused.len());
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// A property that Dartagnan verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Fail,
    Unknown,
}

/// A row of Dartagnan's table.
struct Row {
    path: String,
    check: String,
    bound: u32,
    expected: Verdict,
}

fn read_table(folder: &Path) -> Vec<Row> {
    let table = std::fs::read_to_string(folder.join("verdicts.csv")).unwrap();
    table
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let expected = match cells[3] {
                "PASS" => Verdict::Pass,
                "FAIL" => Verdict::Fail,
                "UNKNOWN" => Verdict::Unknown,
                other => panic!("{other}"),
            };
            let bound = cells[2].parse().unwrap_or(1);
            Row { path: cells[0].to_owned(), check: cells[1].to_owned(), bound, expected }
        })
        .collect()
}

/// Parses a progress model: `qfobesghsa` is `qf=obe,sg=hsa`.
fn progress_model(name: &str) -> ProgressModel {
    if let Some(promise) = name.strip_suffix("uniform") {
        return promise.parse().unwrap();
    }
    let mut levels = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (level, after) = rest.split_at(2);
        let promises = ["fair", "lobe", "hsa-obe", "hsa", "obe", "unfair"];
        let promise = promises.iter().find(|promise| after.starts_with(**promise)).unwrap();
        levels.push(format!("{level}={promise}"));
        rest = &after[promise.len()..];
    }
    levels.join(",").parse().unwrap()
}

/// Step budget of a row, so that the result does not depend on the machine.
const STEPS: u64 = 4_000_000;
/// Step budget of rows that are known to exceed it.
const FEW_STEPS: u64 = 50_000;

fn answer_row(folder: &Path, row: &Row, model: &Model, steps: u64) -> Result<Verdict, String> {
    let bytes = std::fs::read(folder.join(&row.path)).unwrap();
    let module = entry_point::read_module(&bytes).map_err(|refusal| refusal.to_string())?;
    let options = AnalysisOptions {
        unroll: Some(row.bound),
        ignore_filter: row.check.ends_with("-false"),
        ..AnalysisOptions::default()
    };
    let lifted = symbolic::lift(&module, &options).map_err(|refusal| refusal.to_string())?;
    let budget = Budget::from_steps(steps);
    if std::env::var_os("SHOW").is_some() {
        lifted.cases.iter().for_each(|case| println!("{}", litmus::print(&case.test)));
    }
    if let Some(name) = row.check.strip_prefix("liveness-") {
        let model_of_progress = progress_model(name);
        let mut ends = true;
        for case in &lifted.cases {
            let limits = ProgressLimits::with_budget(budget);
            let answer = check_termination(&case.test, model, &model_of_progress, Fairness::Weak, &limits);
            let answer = answer.map_err(|error| error.to_string())?;
            ends &= answer.terminates.ok_or_else(|| format!("out of time: {:?}", answer.details))?;
        }
        return Ok(if ends { Verdict::Pass } else { Verdict::Fail });
    }
    let safety = row.check == "safety";
    let query = ModelQuery { budget, decide_race: !safety, decide_question: safety, locate_race: false };
    let answer = symbolic::answer_with_model(&lifted, model, &query).map_err(|error| error.to_string())?;
    let holds = if safety {
        answer.holds
    } else {
        (answer.race != Race::Unknown).then_some(answer.race == Race::Free)
    };
    match holds {
        Some(true) => Ok(Verdict::Pass),
        Some(false) => Ok(Verdict::Fail),
        None if answer.is_out_of_time => Err("out of time".to_owned()),
        None => Ok(Verdict::Unknown),
    }
}

/// Every row has the verdict of Dartagnan, except those in `different.tsv`.
#[test]
fn verdicts_agree_with_dartagnan() {
    let Some(folder) = dartagnan_folder() else { return };
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let only = std::env::var("ROW").unwrap_or_default();
    let explained: HashMap<String, (&str, &str)> = include_str!("different.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[..3].join(" "), (cells[3], cells[4]))
        })
        .collect();
    let mut times = Vec::new();
    let mut wrong = Vec::new();
    for row in read_table(&folder) {
        let name = format!("{} {} {}", row.path, row.check, row.bound);
        if !name.contains(&only) {
            continue;
        }
        let started = Instant::now();
        let (known, reason) = explained.get(&name).copied().unwrap_or(("", ""));
        let steps = if known == "out of time" { FEW_STEPS } else { STEPS };
        let answered = answer_row(&folder, &row, &model, steps);
        let took = started.elapsed();
        let line = format!("{name}: {answered:?}, the peer says {:?}; {took:?}", row.expected);
        times.push((took, name.clone()));
        let description = match &answered {
            Ok(verdict) => format!("{verdict:?}").to_uppercase(),
            Err(refusal) => refusal.clone(),
        };
        if answered != Ok(row.expected) && description != known {
            println!("{line}");
            wrong.push(line);
        } else if answered == Ok(row.expected) && !known.is_empty() && known != "out of time" {
            wrong.push(format!("{name} agrees, but is listed: {reason}"));
        }
    }
    times.sort();
    let worst: Vec<_> = times.iter().rev().take(12).collect();
    println!("{} rows, median {:?}, worst {worst:#?}", times.len(), times[times.len() / 2].0);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Kernels of real projects are read, and lifted or refused by name, with the expected answers.
#[test]
fn kernels_of_projects_are_read() {
    let Some(folder) = dartagnan_folder() else { return };
    let folder = folder.with_file_name("kernels");
    let Ok(table) = std::fs::read_to_string(folder.join("manifest.csv")) else {
        println!("skipped 1: VK_LITMUS_CORPORA has no kernels");
        return;
    };
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let (mut answered, mut refused, mut wrong) = (0, BTreeMap::new(), Vec::new());
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for kernel in names.iter().filter(|path| path.is_dir()) {
        let name = kernel.file_name().unwrap().to_str().unwrap();
        let case = std::fs::read_to_string(kernel.join("case.toml")).unwrap();
        let case =
            entry_point::inputs::parse_case_file(&case, &|name| Err(format!("{name} is not there"))).unwrap();
        let bytes = std::fs::read(kernel.join(case.module.as_deref().unwrap_or("k.spv"))).unwrap();
        let module = match entry_point::read_module(&bytes) {
            Ok(module) => module,
            Err(refusal) => {
                wrong.push(format!("{name} is not read: {refusal}"));
                continue;
            }
        };
        let query = ModelQuery {
            budget: Budget::from_steps(1_000_000),
            decide_race: true,
            decide_question: false,
            locate_race: true,
        };
        let lifting_result = symbolic::lift(&module, &case.options)
            .map_err(|refusal| refusal.what.to_string())
            .and_then(|lifted| {
                symbolic::answer_with_model(&lifted, &model, &query).map_err(|error| error.to_string())
            });
        match lifting_result {
            Err(reason) => *refused.entry(reason).or_insert(0) += 1,
            Ok(answer) => {
                answered += 1;
                let known = format!("{name},");
                let row = table.lines().find(|line| line.starts_with(&known)).unwrap_or_default();
                // The lines of the race are among the expected ones.
                let lines: Vec<String> = answer
                    .race_spot
                    .iter()
                    .flat_map(|found| found.at.iter())
                    .map(|spot| module.source_line(spot.line).map_or(0, |line| line.line).to_string())
                    .collect();
                let columns: Vec<&str> = row.split(',').collect();
                let listed = |line: &String| {
                    columns.iter().any(|cell| cell.split(" | ").any(|known| known.trim() == line))
                };
                let fits = match answer.race {
                    Race::Racy => row.contains(",racy") && lines.iter().any(listed),
                    // A race checker cannot detect an atomic whose order is too weak.
                    Race::Free => !row.contains(",racy"),
                    Race::Unknown => true,
                };
                if !fits {
                    wrong.push(format!("{name}: {:?} at {lines:?}, known is {row}", answer.race));
                }
            }
        }
    }
    println!("{answered} kernels answered, refused: {refused:#?}");
    assert!(wrong.is_empty() && answered >= 10, "{answered} answered\n{}", wrong.join("\n"));
}
