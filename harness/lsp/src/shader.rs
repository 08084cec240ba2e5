//! Findings in shaders: `lint` and `race` in child processes, and their output as problems.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use editor::{Correction, NewFile, Severity, TextProblem, offset_at};
use repair::{CodeEdit, FixEdits, fix_edits};
use results::wire::{
    ChangeRecord, FindingPlace, FindingRecord, NeededRecord, RaceCoverage, RaceProof, RejectedLine,
};
use results::write::change::describe_change;
use results::write::race::{describe_need, open_findings, pattern_hint};
use serde::Deserialize;
use shader_source::scan::line_range;

use crate::child::{CancelFlag, ChildCommand, ChildError, ChildLimit, ChildOutput, run_child};
use crate::settings::EditorSettings;

/// The time limit of `lint`, compiling included.
const LINT_LIMIT: Duration = Duration::from_secs(10);
/// Time for compiling, and for ending a run that reached its limit.
const GRACE_TIME: Duration = Duration::from_secs(10);
/// The code of problems that inputs decide.
const NEEDS_INPUTS: &str = "needs-inputs";
/// The code of shaders that do not compile.
pub const REFUSED: &str = "refused";
/// The extension of the case file of a shader.
const CASE_EXTENSION: &str = "case.toml";
/// Extensions of languages without included files.
const EXTENSIONS_WITHOUT_INCLUDES: [&str; 2] = ["spvasm", "wgsl"];

/// A line of the output of `lint` or `race`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum EditorLine {
    Answer(Box<EditorAnswer>),
    /// A shader that `lint` cannot read.
    Rejected(RejectedLine),
}

/// The fields of an answer of `lint` or `race` that an editor shows.
#[derive(Debug, Deserialize)]
struct EditorAnswer {
    #[serde(default)]
    verdict: String,
    #[serde(default)]
    entry: String,
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    rejected: Option<RejectedLine>,
    findings: Vec<FindingRecord>,
    #[serde(default)]
    needs: Vec<NeededRecord>,
    #[serde(default)]
    proof: Option<RaceProof>,
    #[serde(default)]
    counterexample: Vec<String>,
    #[serde(default)]
    coverage: RaceCoverage,
}

/// A shader to analyse.
#[derive(Debug)]
pub struct ShaderJob<'s> {
    pub program: &'s Path,
    pub path: &'s Path,
    pub text: &'s str,
    /// True if the path is a file, whose folder holds included files.
    pub is_file: bool,
    pub settings: &'s EditorSettings,
    /// The limit of child processes.
    pub slots: &'s ChildLimit,
    /// Ends the job early.
    pub cancel: &'s CancelFlag,
}

impl ShaderJob<'_> {
    fn file_name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(self.path.as_os_str())
    }

    /// Lints the text, which may not be saved yet, in a copy in `scratch`.
    ///
    /// # Errors
    /// If the job is cancelled, or the child cannot run.
    pub fn lint(&self, scratch: &Path) -> Result<Vec<TextProblem>, ChildError> {
        let folder = tempfile::tempdir_in(scratch)?;
        fs::write(folder.path().join(self.file_name()), self.text)?;
        let mut arguments: Vec<&OsStr> = ["lint", "--format", "json"].map(OsStr::new).into();
        let extension = self.path.extension().and_then(OsStr::to_str).unwrap_or_default();
        if !EXTENSIONS_WITHOUT_INCLUDES.contains(&extension) {
            let own_folder = self.path.parent().filter(|_| self.is_file).map(Path::as_os_str);
            for include in own_folder.into_iter().chain(self.settings.include.iter().map(OsStr::new)) {
                arguments.extend([OsStr::new("-I"), include]);
            }
        }
        let output = self.run_program(arguments, folder.path(), LINT_LIMIT)?;
        Ok(self.parse_problems(&output))
    }

    /// Checks the saved file for races.
    ///
    /// A case file of the same name, `NAME.case.toml` or `STEM.case.toml`, gives the inputs.
    ///
    /// # Errors
    /// If the job is cancelled, or the child cannot run.
    pub fn race(&self, scratch: &Path) -> Result<Vec<TextProblem>, ChildError> {
        let saved = tempfile::tempdir_in(scratch)?;
        let chosen = saved.path().join("chosen.case.toml");
        let limit = self.settings.race_limit();
        let seconds = format!("{}s", limit.as_secs());
        let mut arguments: Vec<&OsStr> =
            ["race", "--format", "json", "--time", &seconds].map(OsStr::new).into();
        arguments.extend(self.settings.race_arguments.iter().map(OsStr::new));
        for include in &self.settings.include {
            arguments.extend([OsStr::new("-I"), OsStr::new(include)]);
        }
        let case = self.case_file();
        if let Some(case) = &case {
            arguments.extend([OsStr::new("--case"), case.as_os_str()]);
        }
        arguments.extend([OsStr::new("--save-case"), chosen.as_os_str()]);
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let output = self.run_program(arguments, folder, limit * 2 + GRACE_TIME)?;
        let mut problems = self.parse_problems(&output);
        // An existing file is the author's.
        if let Some(text) = fs::read_to_string(&chosen).ok().filter(|_| !self.long_case_file().exists()) {
            let file = NewFile { extension: CASE_EXTENSION.to_owned(), text };
            let needs = problems.iter_mut().filter(|problem| problem.code == NEEDS_INPUTS);
            needs.for_each(|problem| problem.new_file = Some(file.clone()));
        }
        Ok(problems)
    }

    /// Returns the case file of the shader, if there is one.
    fn case_file(&self) -> Option<PathBuf> {
        let short = self.path.with_extension(CASE_EXTENSION);
        [self.long_case_file(), short].into_iter().find(|case| case.is_file())
    }

    /// Returns the case file of this shader alone, whether it exists or not.
    fn long_case_file(&self) -> PathBuf {
        let mut long = self.path.as_os_str().to_owned();
        long.push(".case.toml");
        PathBuf::from(long)
    }

    fn run_program<'a>(
        &'a self,
        mut arguments: Vec<&'a OsStr>,
        folder: &Path,
        limit: Duration,
    ) -> Result<ChildOutput, ChildError> {
        arguments.extend([OsStr::new("--"), self.file_name()]);
        let command = ChildCommand { program: self.program, arguments, folder, input: "", time_limit: limit };
        run_child(&command, self.slots, &|| self.cancel.is_cancelled())
    }

    /// Converts the output of a child to problems.
    fn parse_problems(&self, output: &ChildOutput) -> Vec<TextProblem> {
        let name = self.file_name().to_string_lossy();
        let first_line = line_range(self.text, 1);
        let lines: Vec<EditorLine> =
            output.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.is_empty() {
            let (severity, code, message) = match output.code {
                Some(0) => return Vec::new(),
                Some(_) => (Severity::Error, REFUSED, output.stderr.trim().to_owned()),
                None => (Severity::Warning, "crash", "the analysis of this shader crashed".to_owned()),
            };
            return vec![TextProblem::new(first_line, severity, code, message)];
        }
        let mut problems = Vec::new();
        for line in &lines {
            let answer = match line {
                EditorLine::Answer(answer) => answer,
                EditorLine::Rejected(rejected) => {
                    problems.push(refusal_problem(rejected, &name, self.text, Severity::Error));
                    continue;
                }
            };
            let before = problems.len();
            problems.extend(answer.findings.iter().map(|finding| {
                let mut problem = finding_problem(finding, &name, self.text);
                problem
                    .message
                    .extend(pattern_hint(finding, &answer.coverage).map(|hint| format!("\n{hint}")));
                problem
            }));
            problems.extend(needs_problems(&answer.needs, &name, self.text));
            let severity = match answer.verdict.as_str() {
                "refused" => Severity::Error,
                _ => Severity::Information,
            };
            match (&answer.rejected, &answer.why) {
                (Some(rejected), _) if answer.findings.is_empty() => {
                    problems.push(refusal_problem(rejected, &name, self.text, severity));
                }
                (None, Some(why)) if answer.findings.is_empty() => {
                    problems.push(TextProblem::new(first_line.clone(), severity, REFUSED, why.clone()));
                }
                _ => {}
            }
            // Inputs with which the shader is not clean.
            let message = match &answer.proof {
                Some(proof) if !proof.counterexample.is_empty() => {
                    let conditions = proof.conditions.join(" and ");
                    Some(format!("clean if {conditions}; not clean with {}", proof.counterexample.join(", ")))
                }
                None if !answer.counterexample.is_empty() => {
                    let inputs = answer.counterexample.join(", ");
                    Some(format!("clean for the inputs that were tried; not clean with {inputs}"))
                }
                _ => None,
            };
            if let Some(message) = message {
                problems.push(TextProblem::new(
                    first_line.clone(),
                    Severity::Information,
                    "condition",
                    message,
                ));
            }
            // No answer but a clean one is silent.
            if problems.len() == before && !matches!(answer.verdict.as_str(), "" | "clean" | "proved") {
                let message = format!("`{}` is {}: no answer yet", answer.entry, answer.verdict);
                let range = first_line.clone();
                problems.push(TextProblem::new(range, Severity::Information, &answer.verdict, message));
            }
        }
        problems.sort_by_key(|problem| problem.range.start);
        problems.dedup();
        problems
    }
}

/// Returns the problem for a shader without an answer, at its position if that is in this document.
fn refusal_problem(rejected: &RejectedLine, name: &str, text: &str, severity: Severity) -> TextProblem {
    let RejectedLine { file, error, line, column } = rejected;
    let is_here = is_this_document(name, &Some(file.clone()));
    let (line, column) = if is_here { (*line as usize, *column as usize) } else { (1, 1) };
    let mut range = line_range(text, line);
    if column > 1 {
        let start = offset_at(text, line, column);
        range = start..range.end.max(start);
    }
    // The editor shows the place itself.
    let message = error.strip_prefix(&format!("{name}:{line}:")).unwrap_or(error).trim();
    TextProblem::new(range, severity, REFUSED, message.to_owned())
}

/// Converts the inputs that an answer needs to problems: one for each finding, and one for each input that keeps lines
/// from being reached.
fn needs_problems(needs: &[NeededRecord], name: &str, text: &str) -> Vec<TextProblem> {
    let open = open_findings(needs).into_iter().map(|open| {
        let problem = finding_problem(open.finding, name, text);
        let options: Vec<String> = open.describe_options().collect();
        let message =
            format!("{} for some inputs: {}\n{}", open.finding.kind, problem.message, options.join("\n"));
        TextProblem { severity: Severity::Warning, code: NEEDS_INPUTS.to_owned(), message, ..problem }
    });
    let others = needs.iter().filter(|needed| needed.finding.is_none()).map(|needed| {
        let is_here = |place: &&FindingPlace| is_this_document(name, &place.file);
        let line = needed.at.as_ref().filter(is_here).and_then(|place| place.line).unwrap_or(1);
        let range = line_range(text, line as usize);
        TextProblem::new(range, Severity::Information, NEEDS_INPUTS, describe_need(needed))
    });
    open.chain(others).collect()
}

/// Returns true if a place is in the document of this name.
fn is_this_document(name: &str, file: &Option<String>) -> bool {
    file.as_deref().is_none_or(|file| file.rsplit(['/', '\\']).next() == Some(name))
}

/// Converts a finding to a problem at its first place in this document.
fn finding_problem(finding: &FindingRecord, name: &str, text: &str) -> TextProblem {
    let is_this_document = |file: &Option<String>| is_this_document(name, file);
    let is_warning = finding.kind.starts_with("lint:") || finding.is_of_compiler();
    let severity = if is_warning { Severity::Warning } else { Severity::Error };
    let mut places = finding.at.iter().filter(|place| is_this_document(&place.file));
    let mut message = finding.message.clone();
    let range = match places.next() {
        Some(place) => line_range(text, place.line.unwrap_or(1) as usize),
        None => {
            if let Some(place) = finding.at.first() {
                let file = place.file.as_deref().unwrap_or_default();
                message = format!("{file}:{}: {message}", place.line.unwrap_or(1));
            }
            line_range(text, 1)
        }
    };
    let related = places.map(|place| {
        let what = place.access.as_deref().unwrap_or("reached");
        let by = place.invocation.as_deref().map(|by| format!(" by invocation {by}")).unwrap_or_default();
        (line_range(text, place.line.unwrap_or(1) as usize), format!("{what}{by}"))
    });
    let related = related.collect();
    for change in finding.changes() {
        let place = match &change.file {
            Some(file) if !is_this_document(&change.file) => format!("{file}:{}", change.line.unwrap_or(1)),
            _ => format!("line {}", change.line.unwrap_or(1)),
        };
        message = format!("{message}\nFix: {place}: {}", describe_change(&change.change));
    }
    let corrections = fix_correction(finding.changes(), is_this_document, text).into_iter().collect();
    TextProblem { related, corrections, ..TextProblem::new(range, severity, &finding.kind, message) }
}

/// Returns the edits of a fix whose changes all insert code before or after lines of this document.
fn fix_correction(
    changes: &[ChangeRecord],
    is_this_document: impl Fn(&Option<String>) -> bool,
    text: &str,
) -> Option<Correction> {
    let FixEdits { title, edits } = fix_edits(changes, is_this_document, text)?;
    let edits = edits.into_iter().map(|CodeEdit { range, code }| (range, code));
    Some(Correction { title, edits: edits.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "void main() {\n    tile[i] = x;\n    y = tile[j];\n}\n";

    fn finding(json: &str) -> TextProblem {
        finding_problem(&serde_json::from_str(json).unwrap(), "k.comp", TEXT)
    }

    #[test]
    fn findings_are_problems_with_fixes() {
        let problem = finding(
            r#"{"kind":"race","message":"data race","at":[
                {"file":"src/k.comp","line":3,"invocation":"(0,0,0)","access":"read"},
                {"file":"src/k.comp","line":2,"invocation":"(1,0,0)","access":"write"}],
                "change":{"parts":[{"file":"src/k.comp","line":3,"kind":"insert","code":"barrier();","side":"before","anchor":"line"}]}}"#,
        );
        assert_eq!(&TEXT[problem.range.clone()], "y = tile[j];");
        assert_eq!(problem.severity, Severity::Error);
        assert_eq!(problem.related, [(18..30, "write by invocation (1,0,0)".to_owned())]);
        let fix = Correction {
            title: "Put `barrier();` before line 3".to_owned(),
            edits: vec![(35..35, "barrier();\n    ".to_owned())],
        };
        assert_eq!(problem.corrections, [fix]);
    }

    #[test]
    fn what_a_compiler_lost_is_a_warning() {
        let problem = finding(
            r#"{"kind":"lost-order","message":"m","at":[{"file":"src/k.comp","line":3,"invocation":null,"access":null}]}"#,
        );
        assert_eq!(problem.severity, Severity::Warning);
    }

    #[test]
    fn findings_elsewhere_are_on_the_first_line_and_have_no_edits() {
        let problem = finding(
            r#"{"kind":"lint:lockstep","message":"m","at":[{"file":"lib.glsl","line":9,"invocation":null,"access":null}],
                "change":{"parts":[{"file":"lib.glsl","line":9,"kind":"insert","code":"barrier();","side":"before","anchor":"line"}]}}"#,
        );
        assert_eq!(problem.range, 0..13);
        assert!(problem.message.starts_with("lib.glsl:9: m\nFix: lib.glsl:9: "), "{}", problem.message);
        assert_eq!((problem.severity, problem.corrections.len()), (Severity::Warning, 0));
    }

    #[test]
    fn refusals_are_at_their_position() {
        let cases = [
            ("k.comp", (2, 1), "k.comp:2: syntax error", "tile[i] = x;", "syntax error"),
            ("src/k.comp", (3, 9), "no such name", "tile[j];", "no such name"),
            ("k.comp", (1, 1), "no compiler", "void main() {", "no compiler"),
            ("k.comp", (99, 1), "beyond", "", "beyond"),
            ("lib.glsl", (3, 1), "elsewhere", "void main() {", "elsewhere"),
        ];
        for (file, (line, column), error, at, shown) in cases {
            let rejected = RejectedLine { file: file.to_owned(), error: error.to_owned(), line, column };
            let problem = refusal_problem(&rejected, "k.comp", TEXT, Severity::Error);
            assert_eq!((&TEXT[problem.range.clone()], problem.message.as_str()), (at, shown));
        }
    }
}
