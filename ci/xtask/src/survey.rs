//! Runs `race` over every shader below a folder and counts the answers.
//!
//! Each shader runs in its own process under a time limit, so one crash or endless analysis counts as that
//! and ends nothing else. The first folder of a path is its project. Shaders are never stored here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use walkdir::WalkDir;

use crate::error::ChoreError;

/// Extensions of shaders.
const EXTENSIONS: [&str; 18] = [
    "comp", "vert", "frag", "tesc", "tese", "geom", "mesh", "task", "rgen", "rint", "rahit", "rchit",
    "rmiss", "rcall", "glsl", "hlsl", "compute", "wgsl",
];

const PROCESS_TIME_LIMIT: Duration = Duration::from_secs(90);

/// Time limit of the analysis of an entry point, as an argument.
const ANALYSIS_TIME: &str = "20s";

/// The class of an answer, in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerClass {
    /// No finding, with several invocations and all lines reached.
    Clean,
    /// A finding.
    Found,
    /// No finding, but with one invocation or unreached lines.
    Partial,
    /// The result depends on inputs that no option supplies.
    NeedsInputs,
    /// A limit of time or steps was reached.
    Undecided,
    /// The shader or entry point was refused.
    Refused,
    /// The process exceeded its time limit.
    TimedOut,
    /// The process panicked or was ended by a signal.
    Crashed,
    /// The file has no entry point, so it is a part of others.
    NoEntryPoint,
}

impl AnswerClass {
    const ALL: [AnswerClass; 9] = [
        AnswerClass::Clean,
        AnswerClass::Found,
        AnswerClass::Partial,
        AnswerClass::NeedsInputs,
        AnswerClass::Undecided,
        AnswerClass::Refused,
        AnswerClass::TimedOut,
        AnswerClass::Crashed,
        AnswerClass::NoEntryPoint,
    ];

    fn name(self) -> &'static str {
        match self {
            AnswerClass::Clean => "clean",
            AnswerClass::Found => "found",
            AnswerClass::Partial => "partly reached",
            AnswerClass::NeedsInputs => "needs inputs",
            AnswerClass::Undecided => "undecided",
            AnswerClass::Refused => "refused",
            AnswerClass::TimedOut => "timed out",
            AnswerClass::Crashed => "crashed",
            AnswerClass::NoEntryPoint => "no entry point",
        }
    }
}

/// An answer about an entry point.
struct SurveyAnswer {
    file: PathBuf,
    project: String,
    entry: String,
    class: AnswerClass,
    /// The cause of a refusal.
    cause: String,
    /// The findings, or the reason of another class.
    detail: String,
    seconds: f64,
}

/// Runs the chore: `survey DIR [ARGUMENT OF RACE…]`. Writes `survey.md` and `survey.csv` into the current
/// folder and prints the table.
///
/// # Errors
/// If the folder has no shaders, or the program cannot be built.
pub fn run(root: &Path, arguments: &[String]) -> Result<(), ChoreError> {
    let Some((folder, flags)) = arguments.split_first() else {
        return Err(ChoreError::Survey("expected a folder of shaders: `cargo xtask survey DIR`".to_owned()));
    };
    let folder = PathBuf::from(folder);
    let program = find_program(root)?;
    let is_shader = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension) || extension == "slang")
    };
    let entries = WalkDir::new(&folder).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files: Vec<PathBuf> =
        entries.map(walkdir::DirEntry::into_path).filter(|path| path.is_file() && is_shader(path)).collect();
    if files.is_empty() {
        return Err(ChoreError::Survey(format!("{}: no shaders below this folder", folder.display())));
    }
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(number) else { return };
            let project = file.strip_prefix(&folder).ok().and_then(|path| path.components().next());
            let project =
                project.map_or(String::new(), |part| part.as_os_str().to_string_lossy().into_owned());
            let found = analyse_file(&program, file, &project, flags);
            if let Ok(mut answers) = answers.lock() {
                answers.insert(number, found);
            }
            if (number + 1).is_multiple_of(50) {
                eprintln!("{} of {} files", number + 1, files.len());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let answers: Vec<SurveyAnswer> =
        answers.into_inner().unwrap_or_default().into_values().flatten().collect();
    let table = format_table(&answers);
    print!("{table}");
    write_file("survey.md", &table)?;
    write_file("survey.csv", &format_csv(&answers))
}

fn write_file(path: &str, text: &str) -> Result<(), ChoreError> {
    std::fs::write(path, text).map_err(|source| ChoreError::Write { path: PathBuf::from(path), source })
}

/// Returns the program: `VK_LITMUS_BINARY` if set, otherwise a release build of this repository.
fn find_program(root: &Path) -> Result<PathBuf, ChoreError> {
    if let Some(path) = std::env::var_os("VK_LITMUS_BINARY") {
        return Ok(PathBuf::from(path));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build =
        Command::new(cargo).args(["build", "--release", "-p", "vk-litmus"]).current_dir(root).status();
    let status = build.map_err(ChoreError::Start)?;
    if !status.success() {
        return Err(ChoreError::Command(status));
    }
    Ok(root.join("target/release/vk-litmus"))
}

/// Analyses a file in a process; returns an answer for each entry point, at least one.
fn analyse_file(program: &Path, file: &Path, project: &str, flags: &[String]) -> Vec<SurveyAnswer> {
    let started = Instant::now();
    let answer = |entry: &str, class, cause: &str, detail: &str| SurveyAnswer {
        file: file.to_owned(),
        project: project.to_owned(),
        entry: entry.to_owned(),
        class,
        cause: cause.to_owned(),
        detail: detail.lines().next().unwrap_or_default().to_owned(),
        seconds: started.elapsed().as_secs_f64(),
    };
    let mut command = Command::new(program);
    command.arg("race").arg(file).args(["--format", "json", "--time", ANALYSIS_TIME]).args(flags);
    let (code, output, errors) = match run_with_limit(&mut command) {
        Ok(Some(ended)) => ended,
        Ok(None) => return vec![answer("", AnswerClass::TimedOut, "", "")],
        Err(error) => return vec![answer("", AnswerClass::Crashed, "", &error.to_string())],
    };
    // Rust programs end with 101 after a panic.
    if code.is_none_or(|code| code > 100) {
        let panic_line = errors.lines().find(|line| line.contains("panicked")).unwrap_or_default();
        return vec![answer("", AnswerClass::Crashed, "", panic_line)];
    }
    let lines: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.is_empty() {
        return vec![answer("", AnswerClass::Refused, "no answer", &errors)];
    }
    let classified = lines.iter().map(|line| {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        let class = classify_line(line);
        let kinds = line["findings"].as_array().into_iter().flatten();
        let kinds: Vec<&str> = kinds.filter_map(|finding| finding["message"].as_str()).collect();
        let detail = if kinds.is_empty() { text("why").to_owned() } else { kinds.join("; ") };
        let cause = if class == AnswerClass::Refused { text("cause") } else { "" };
        answer(text("entry"), class, cause, &detail)
    });
    classified.collect()
}

/// Returns the class of a line of `race --format json`.
fn classify_line(line: &Value) -> AnswerClass {
    let coverage = &line["coverage"];
    let mut limits = coverage["limits"].as_array().into_iter().flatten();
    let is_complete = coverage["grid"]["invocations"].as_u64().is_some_and(|count| count > 1)
        && !limits.any(|limit| limit["kind"] == "unreached");
    match line["verdict"].as_str().unwrap_or_default() {
        "clean" | "order-dependent" if is_complete => AnswerClass::Clean,
        "clean" | "order-dependent" => AnswerClass::Partial,
        "needs-inputs" => AnswerClass::NeedsInputs,
        "undecided" => AnswerClass::Undecided,
        "refused" if line["cause"] == "no entry point" => AnswerClass::NoEntryPoint,
        "refused" => AnswerClass::Refused,
        _ => AnswerClass::Found,
    }
}

/// Runs a process for at most [`PROCESS_TIME_LIMIT`]; returns its exit code, output and errors, or `None` if it was
/// ended.
fn run_with_limit(command: &mut Command) -> std::io::Result<Option<(Option<i32>, String, String)>> {
    let folder = tempfile::tempdir()?;
    let (out, errors) = (folder.path().join("out"), folder.path().join("errors"));
    command.stdin(Stdio::null()).stdout(std::fs::File::create(&out)?).stderr(std::fs::File::create(&errors)?);
    let mut child = command.spawn()?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let text = |path| std::fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
            return Ok(Some((status.code(), text(&out)?, text(&errors)?)));
        }
        if started.elapsed() > PROCESS_TIME_LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Formats the counts as Markdown: a row for each project, and a row for each cause of a refusal.
fn format_table(answers: &[SurveyAnswer]) -> String {
    let mut projects: BTreeMap<&str, Vec<&SurveyAnswer>> = BTreeMap::new();
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for answer in answers {
        projects.entry(&answer.project).or_default().push(answer);
        if answer.class == AnswerClass::Refused {
            *causes.entry(&answer.cause).or_default() += 1;
        }
    }
    let all: Vec<&SurveyAnswer> = answers.iter().collect();
    let mut text = String::from("| project | entry points |");
    text.extend(AnswerClass::ALL.map(|class| format!(" {} |", class.name())));
    text += "\n|---|--:|";
    text.extend(AnswerClass::ALL.map(|_| "--:|"));
    text.push('\n');
    for (project, answers) in projects.iter().map(|(name, of)| (*name, of)).chain([("**all**", &all)]) {
        let _ = write!(text, "| {project} | {} |", answers.len());
        for class in AnswerClass::ALL {
            let count = answers.iter().filter(|answer| answer.class == class).count();
            let _ = write!(text, " {count} |");
        }
        text.push('\n');
    }
    let count_in_classes =
        |classes: &[AnswerClass]| answers.iter().filter(|answer| classes.contains(&answer.class)).count();
    let answered = count_in_classes(&[AnswerClass::Clean, AnswerClass::Found]);
    let compiled = causes.iter().filter(|(cause, _)| **cause == "not supported by the analysis");
    let compiled = answers.len() - count_in_classes(&[AnswerClass::Refused, AnswerClass::NoEntryPoint])
        + compiled.map(|(_, count)| count).sum::<usize>();
    let percent = 100.0 * answered as f64 / compiled.max(1) as f64;
    let _ =
        writeln!(text, "\n{answered} of {compiled} entry points that compile are answered ({percent:.0} %).");
    text += "\n| refused because | entry points |\n|---|--:|\n";
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(cause, count)| (std::cmp::Reverse(*count), *cause));
    for (cause, count) in causes {
        let _ = writeln!(text, "| {cause} | {count} |");
    }
    text
}

/// Formats a line for each entry point.
fn format_csv(answers: &[SurveyAnswer]) -> String {
    let mut text = String::from("project,file,entry,class,cause,seconds,detail\n");
    let quote = |field: &str| format!("\"{}\"", field.replace('"', "\"\""));
    for answer in answers {
        let fields = [
            quote(&answer.project),
            quote(&answer.file.display().to_string()),
            quote(&answer.entry),
            answer.class.name().to_owned(),
            quote(&answer.cause),
            format!("{:.2}", answer.seconds),
            quote(&answer.detail),
        ];
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_classified_by_verdict_and_coverage() {
        let line = |verdict: &str, invocations: u64, limit: &str, cause: Option<&str>| {
            let coverage = serde_json::json!({
                "grid": { "invocations": invocations },
                "limits": [{ "kind": limit }],
            });
            serde_json::json!({ "verdict": verdict, "coverage": coverage, "cause": cause })
        };
        let cases = [
            (line("clean", 64, "note", None), AnswerClass::Clean),
            (line("clean", 1, "note", None), AnswerClass::Partial),
            (line("clean", 64, "unreached", None), AnswerClass::Partial),
            (line("racy", 64, "", None), AnswerClass::Found),
            (line("needs-inputs", 64, "", None), AnswerClass::NeedsInputs),
            (line("refused", 0, "", Some("does not compile")), AnswerClass::Refused),
            (line("refused", 0, "", Some("no entry point")), AnswerClass::NoEntryPoint),
        ];
        for (line, expected) in cases {
            assert_eq!(classify_line(&line), expected, "{line}");
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_project_and_cause() {
        let answer = |project: &str, class, cause: &str| SurveyAnswer {
            file: PathBuf::from("k.comp"),
            project: project.to_owned(),
            entry: "main".to_owned(),
            class,
            cause: cause.to_owned(),
            detail: "a \"b\"".to_owned(),
            seconds: 0.5,
        };
        let answers = [
            answer("one", AnswerClass::Clean, ""),
            answer("one", AnswerClass::Refused, "does not compile"),
            answer("two", AnswerClass::Refused, "not supported by the analysis"),
        ];
        let text = format_table(&answers);
        assert!(text.contains("| one | 2 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |"), "{text}");
        assert!(text.contains("| **all** | 3 |"), "{text}");
        assert!(text.contains("1 of 2 entry points that compile are answered (50 %)."), "{text}");
        assert!(text.contains("| does not compile | 1 |"), "{text}");
        assert!(format_csv(&answers).contains("\"k.comp\",\"main\",clean,\"\",0.50,\"a \"\"b\"\"\"\n"));
    }
}
