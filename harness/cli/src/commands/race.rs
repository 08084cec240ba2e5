//! `race`: races and other undefined behaviour in shaders, over whole grids.

pub(crate) mod files;
pub(crate) mod snippet;
pub(crate) mod step;
pub(crate) mod summary;

use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use campaign::compilers::kernels::numbered_path;
use campaign::parallel::process_in_order_on;
use campaign::shader::device_contents::ContentsDevice;
use campaign::shader::race::{FixDiffs, to_page};
use entry_point::ScheduleToken;
use results::wire::{RaceLine, RaceVerdict};
use results::write::json::JsonLinesWriter;
use results::write::junit::JunitAnswerWriter;
use results::write::race::{format_race, pattern_hint};
use results::write::sarif;
use vk_litmus::{
    CompileOptions, Error, ErrorKind, RaceAnswer, RaceDetector, ShaderInputs, ShaderModule, program,
};

use super::answer_status::{answer_status, verdict_outcome};
use super::record::{JudgeOptions, RECORDING_FILE, judge_recording};
use crate::arguments::{FailureKind, Race, RaceFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, command_line, output_failure, print_message, text_layout, write_file};

use files::{ShaderFile, collect_shader_files};
use snippet::{SnippetStyle, format_with_snippets};
use summary::{FileBar, RaceSummary};

/// Upper bound on the files whose answers are printed in full without `--verbose`.
const MAX_DETAILED_FILES: usize = 16;

/// An analysed entry point, or a refused file.
struct EntryAnswer {
    answer: RaceAnswer,
    /// The exit code of a refusal.
    refusal: Outcome,
    /// True if the file was found in a folder and has no entry point: other files include it.
    is_skipped: bool,
    /// Constants of the source that no option sets, with their assumed values.
    assumed: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it early; findings in a shader are not errors.
pub fn race(arguments: &Race, quiet: bool, verbose: bool) -> Result<Outcome, Failure> {
    if let [recording] = &arguments.shaders[..]
        && Path::new(recording).join(RECORDING_FILE).exists()
    {
        let jobs = arguments.jobs.map(|jobs| jobs.get() as usize);
        let (format, fail_on) = (arguments.format, arguments.fail_on.clone());
        let ends = arguments.total_time.map(|time| Instant::now() + time);
        let options =
            JudgeOptions { format, fail_on, time_limit: arguments.time, ends, jobs, has_page: false };
        return judge_recording(Path::new(recording), &options, quiet);
    }
    if arguments.out.is_some() && arguments.emit.is_none() {
        let problem = "`--out` is the file of `--emit`; redirect the answer of `--format`: `> FILE`";
        return Err(Failure::input_message(problem));
    }
    if let Some(file) = &arguments.fix
        && !file.extension().is_some_and(|extension| extension == "diff" || extension == "patch")
    {
        return Err(Failure::input_message(format!(
            "`--fix` takes the file to write, such as `fixes.diff`, and `{}` has no name of a diff",
            file.display()
        )));
    }
    let mut detector = RaceDetector::new().map_err(program::into_failure)?;
    detector = detector.time_limit(arguments.time).model_time_limit(arguments.timeout).seed(arguments.seed);
    let ends = arguments.total_time.map(|time| Instant::now() + time);
    if let Some(end) = ends {
        detector = detector.ends_at(end);
    }
    if let Some(schedules) = arguments.schedules {
        detector = detector.schedules(schedules);
    }
    if let Some(ScheduleToken { seed, schedule }) = arguments.replay {
        detector = detector.replay(seed, schedule);
    }
    if let Some(steps) = arguments.steps {
        detector = detector.max_steps(steps);
    }
    if arguments.lint {
        detector = detector.with_lints();
    }
    if arguments.prove {
        detector = detector.require_proofs();
    } else if arguments.contents {
        // They are those of these inputs.
        detector = detector.skip_proofs();
    }
    if let Some(solver) = &arguments.solver {
        detector = detector.smt_solver(solver).map_err(program::into_failure)?;
    }
    if arguments.emit.is_some() {
        detector = detector.with_tests();
    }
    if let Some(number) = arguments.step {
        if !matches!(arguments.format, RaceFormat::Text | RaceFormat::Json) {
            let problem = "--step: expected `--format text` or `--format json`";
            return Err(Failure::input_message(problem));
        }
        detector = detector.with_trace(number as usize - 1);
    }
    if let Some(path) = &arguments.save_case {
        if path.exists() {
            return Err(Failure::input_message(format!(
                "--save-case: `{}` exists: remove it or give another name",
                path.display()
            )));
        }
        detector = detector.save_case(path);
    }
    let given = arguments.kernel.shader_inputs(None)?;
    if arguments.contents && arguments.format != RaceFormat::Json {
        return Err(Failure::input_message("--contents: expected `--format json` as well".to_owned()));
    }
    let given = if arguments.contents { given.keep_contents() } else { given };
    let inputs = arguments.assume.iter().fold(given, |inputs, condition| inputs.assume(condition));
    let compilation = arguments.kernel.compilation()?;
    let device = arguments.device.as_deref().map(ContentsDevice::select).transpose()?;
    let files = collect_shader_files(&arguments.shaders, &compilation)?;
    let compilation = program::compile_options(compilation);
    let is_many = files.len() > 1;
    let workers = arguments.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |jobs| jobs.get() as usize,
    );
    let bar = FileBar::new(files.len(), is_many && !quiet);
    let is_long = files.len() > MAX_DETAILED_FILES && arguments.format == RaceFormat::Text;
    let mut output = AnswerWriter::new(arguments, quiet);
    output.is_condensed = is_long && !verbose && arguments.emit.is_none();
    let mut summary = RaceSummary::default();
    let analyse = |file: &ShaderFile| {
        let answers = match ends.is_some_and(|end| Instant::now() >= end) {
            true => vec![EntryAnswer {
                answer: program::unanswered(&file.path),
                refusal: Outcome::Environment,
                is_skipped: false,
                assumed: Vec::new(),
            }],
            false => analyse(file, &compilation, &detector, &inputs, device.as_ref()),
        };
        bar.advance(&file.path);
        answers
    };
    let deliver = |answers: Vec<EntryAnswer>| {
        for answer in answers {
            summary.add(&answer.answer.line, answer.is_skipped);
            bar.suspend(|| output.add(&answer))?;
        }
        Ok(())
    };
    process_in_order_on(workers, &files, analyse, deliver)?;
    bar.finish();
    if is_many && !quiet {
        print_message(&summary.to_text());
    }
    if output.is_condensed {
        output.out.print(&summary.list())?;
    }
    output.finish()
}

/// Names the patterns that replace racing code, for the first race of each form without a fix.
fn pattern_hints(line: &RaceLine) -> String {
    let mut hints: Vec<String> =
        line.findings.iter().filter_map(|finding| pattern_hint(finding, &line.coverage)).collect();
    hints.dedup();
    hints.into_iter().map(|hint| format!("  {hint}\n")).collect()
}

/// Compiles a file and analyses its entry points.
fn analyse(
    file: &ShaderFile,
    compilation: &CompileOptions,
    detector: &RaceDetector,
    inputs: &ShaderInputs,
    device: Option<&ContentsDevice>,
) -> Vec<EntryAnswer> {
    let answers = |shader: Result<ShaderModule, Error>| match shader.and_then(|shader| {
        let found = find_races(&shader, detector, inputs, device)?;
        Ok((shader, found))
    }) {
        Ok((shader, found)) => {
            let assumed = shader.assumed_constants().map(|(name, value)| format!("{name}={value}"));
            let assumed: Vec<String> = assumed.collect();
            let entry = |answer| EntryAnswer {
                answer,
                refusal: Outcome::Input,
                is_skipped: false,
                assumed: assumed.clone(),
            };
            found.into_iter().map(entry).collect::<Vec<_>>()
        }
        Err(error) => {
            let answer = detector.refuse(&error, inputs);
            let is_skipped = file.is_found && error.kind() == ErrorKind::NoEntryPoint;
            // A missing compiler is an environment error, not a mistake in the shader.
            let refusal = Outcome::from(&program::into_failure(error));
            vec![EntryAnswer { answer, refusal, is_skipped, assumed: Vec::new() }]
        }
    };
    file.load(compilation).into_iter().flat_map(answers).collect()
}

/// Analyses the entry points of a shader, and dispatches each on a device if one is given.
fn find_races(
    shader: &ShaderModule,
    detector: &RaceDetector,
    inputs: &ShaderInputs,
    device: Option<&ContentsDevice>,
) -> Result<Vec<RaceAnswer>, Error> {
    let Some(device) = device else { return Ok(detector.find_races(shader, inputs)) };
    let inputs = program::fit_to_device(inputs, shader, device)?;
    let mut answers = detector.find_races(shader, &inputs);
    for answer in answers.iter_mut().filter(|answer| !answer.line.contents.is_empty()) {
        program::add_device_contents(&mut answer.line, shader, &inputs, device)?;
    }
    Ok(answers)
}

/// Writes the answers in the requested format.
struct AnswerWriter<'a> {
    arguments: &'a Race,
    is_quiet: bool,
    snippets: Option<SnippetStyle>,
    /// True if a list of findings replaces the text of each answer.
    is_condensed: bool,
    out: StandardOutput,
    log: sarif::SarifCheckWriter<Vec<u8>>,
    page: Vec<explanation::ShaderAnswer>,
    junit: JunitAnswerWriter,
    emitted: Vec<String>,
    fixes: FixDiffs,
    outcome: Outcome,
}

impl AnswerWriter<'_> {
    fn new(arguments: &Race, quiet: bool) -> AnswerWriter<'_> {
        let layout = text_layout(true);
        let is_shown = arguments.snippets || std::io::stdout().is_terminal();
        AnswerWriter {
            arguments,
            is_quiet: quiet,
            is_condensed: false,
            snippets: is_shown.then_some(SnippetStyle { has_colour: layout.has_colour, width: layout.width }),
            out: if layout.has_colour { StandardOutput::coloured() } else { StandardOutput::new() },
            log: sarif::SarifCheckWriter::new(Vec::new()),
            page: Vec::new(),
            junit: JunitAnswerWriter::default(),
            emitted: Vec::new(),
            fixes: FixDiffs::default(),
            outcome: Outcome::Success,
        }
    }

    /// Writes an answer, or buffers it if the format is a single document.
    fn add(&mut self, entry: &EntryAnswer) -> Result<(), Failure> {
        let (format, line) = (self.arguments.format, &entry.answer.line);
        if entry.is_skipped {
            return Ok(());
        }
        let is_lost = self.arguments.strict_compiler && line.module_verdict == Some(RaceVerdict::Racy);
        let (kind, outcome) = match verdict_outcome(line.verdict) {
            (_, Outcome::Success) if is_lost => (FailureKind::Finding, Outcome::RuleBroken),
            (kind, _) if line.verdict == RaceVerdict::Refused => (kind, entry.refusal),
            other => other,
        };
        // A wrong input is never a success.
        let effect = match outcome {
            Outcome::Input => outcome,
            _ => self.arguments.fail_on.outcome(kind, outcome),
        };
        self.outcome.escalate_to(effect);
        if let Some(why) = line.why.as_ref().filter(|_| !self.is_quiet && format == RaceFormat::Json) {
            print_message(why);
        }
        if let Some(element) = line.order_dependent.as_ref().filter(|_| !self.is_quiet)
            && self.arguments.device.is_some()
        {
            print_message(&format!("{}: {element}; a device may leave other contents", line.file));
        }
        if let Some(number) = self.arguments.step.filter(|_| !line.findings.is_empty())
            && number as usize > line.findings.len()
        {
            let count = line.findings.len();
            print_message(&format!(
                "error: {}: --step={number}: expected a finding from 1 to {count}",
                line.file
            ));
            self.outcome.escalate_to(Outcome::Input);
        }
        if !entry.assumed.is_empty() && !self.is_quiet {
            let assumed = entry.assumed.join(", ");
            print_message(&format!(
                "{}: overrides without a value, assumed: {assumed}; set them with `--spec NAME=V`",
                line.file
            ));
        }
        if self.arguments.emit.is_some() {
            for (test, finding) in entry.answer.tests.iter().zip(&line.findings) {
                match test {
                    Some(test) => self.emitted.push(test.to_text()),
                    None if self.is_quiet => {}
                    None => print_message(&format!(
                        "no litmus test with two invocations shows this finding: {}",
                        finding.message
                    )),
                }
            }
            return Ok(());
        }
        if self.arguments.fix.is_some() {
            for finding in &line.findings {
                if !self.fixes.add_fix(finding.changes(), &line.file) && !self.is_quiet {
                    print_message(&format!(
                        "{}: no fix edits the source for: {}",
                        line.file, finding.message
                    ));
                }
            }
        }
        match format {
            RaceFormat::Json => JsonLinesWriter::new(&mut self.out).write(line).map_err(output_failure)?,
            RaceFormat::Text if self.is_condensed || self.is_quiet && effect == Outcome::Success => {}
            RaceFormat::Text => {
                let text = match self.snippets {
                    Some(style) => format_with_snippets(line, style),
                    None => format_race(line),
                };
                self.out.print(&(text + &pattern_hints(line)))?;
                let is_shown = |number: &u32| *number as usize <= line.findings.len();
                if let Some(number) = self.arguments.step.filter(is_shown) {
                    step::show_trace(line, number, &mut self.out)?;
                }
            }
            RaceFormat::Sarif => {
                self.log.add_findings(&line.file, &line.findings);
                self.log.add_needs(&line.file, &line.needs);
                let level = match line.verdict {
                    RaceVerdict::Refused => "error",
                    RaceVerdict::Undecided => "warning",
                    RaceVerdict::Racy | RaceVerdict::Clean | RaceVerdict::NeedsInputs => return Ok(()),
                };
                let why = line.why.as_deref().unwrap_or("no answer");
                self.log.add_notification(&line.file, level, why);
                if !self.is_quiet {
                    print_message(&format!("{}: {why}", results::escape::escape_line(&line.file)));
                }
            }
            RaceFormat::Junit => self.junit.add_shader(line, answer_status(outcome, effect)),
            RaceFormat::Html => self.page.push(to_page(line)),
        }
        Ok(())
    }

    /// Writes the buffered answers and the summary; returns the exit code.
    fn finish(mut self) -> Result<Outcome, Failure> {
        match (&self.arguments.out, &self.emitted[..]) {
            (Some(path), all) => {
                for (number, text) in all.iter().enumerate() {
                    write_file(&numbered_path(path, number), text.as_bytes())?;
                }
            }
            (None, [first, others @ ..]) => {
                self.out.print(first)?;
                if !others.is_empty() && !self.is_quiet {
                    print_message(&format!("{} more: write all to files with `--out FILE`", others.len()));
                }
            }
            (None, []) => {}
        }
        if let Some(path) = &self.arguments.fix {
            match self.fixes.text() {
                text if text.is_empty() => {
                    print_message(&format!("no fix found: {} is not written", path.display()));
                }
                text => write_file(path, text.as_bytes())?,
            }
        }
        match self.arguments.format {
            RaceFormat::Sarif if self.arguments.emit.is_none() => {
                let written = self.log.finish_into_inner().map_err(output_failure)?;
                self.out.print(&String::from_utf8_lossy(&written))?;
            }
            RaceFormat::Junit if self.arguments.emit.is_none() => {
                self.out.print(&self.junit.finish().map_err(output_failure)?)?;
            }
            RaceFormat::Html if self.arguments.emit.is_none() => {
                self.out.print(&explanation::shaders(&self.page, &command_line()))?;
            }
            _ => {}
        }
        Ok(self.outcome)
    }
}
