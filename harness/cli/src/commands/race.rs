//! `race`: races and other undefined behaviour in shaders, over whole grids.

pub(crate) mod files;
mod summary;

use campaign::compilers::kernels::numbered;
use campaign::parallel::in_order_on;
use campaign::shader::race::{RaceOptions, lines, page_of};
use campaign::shader::source::{Compilation, SourceError, SourceModule, load_all};
use frontend::AnalysisOptions;
use litmus::Test;
use model::Model;
use results::wire::{FindingRecord, RaceLine, RaceVerdict};
use results::write::json::Lines;
use results::write::{race::text, sarif};

use crate::arguments::{Race, RaceFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print, say, write_file};

use super::lint;
use files::{ShaderFile, expand};
use summary::{FileBar, Summary};

/// An analysed entry point, or a refused file.
struct EntryAnswer {
    line: RaceLine,
    /// The litmus test of each finding that has one.
    tests: Vec<Option<Test>>,
    /// The exit code of a refusal.
    refusal: Outcome,
    /// True if the file has no entry point and was found in a folder, so it is a part of others.
    is_skipped: bool,
    /// Constants of the source that no option sets, with the values that were assumed.
    assumed: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it early; a finding in a shader does not.
pub fn race(arguments: &Race, quiet: bool) -> Result<Outcome, Failure> {
    let (schedules, seed) = (arguments.schedules, arguments.seed);
    let options = AnalysisOptions { schedules, seed, ..arguments.kernel.options(None)? };
    let model =
        Model::shipped("vulkan").ok_or_else(|| Failure::input_message("no model `vulkan`".to_owned()))?;
    let model = model.map_err(|error| Failure::input_message(error.to_string()))?;
    let asked = RaceOptions {
        walks: arguments.time,
        model: arguments.timeout,
        inputs: arguments.kernel.inputs(),
        save_case: arguments.save_case.as_deref(),
        smallest: arguments.emit.is_some(),
    };
    let compilation = arguments.kernel.compilation()?;
    let files = expand(&arguments.shaders)?;
    let is_many = files.len() > 1;
    let workers = arguments.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |jobs| jobs.get() as usize,
    );
    let bar = FileBar::new(files.len(), is_many && !quiet);
    let mut output = AnswerWriter::new(arguments, quiet);
    let mut summary = Summary::default();
    let analyse = |file: &ShaderFile| {
        let answers = analyse(file, &compilation, (&options, arguments.lint), &model, asked);
        bar.advance(&file.path);
        answers
    };
    let deliver = |answers: Vec<EntryAnswer>| {
        for answer in answers {
            summary.add(&answer.line, answer.is_skipped);
            bar.suspend(|| output.add(&answer))?;
        }
        Ok(())
    };
    in_order_on(workers, &files, analyse, deliver)?;
    bar.finish();
    let outcome = output.finish()?;
    if is_many && !quiet {
        say(&summary.text());
    }
    Ok(outcome)
}

/// Compiles a file and analyses its entry points.
fn analyse(
    file: &ShaderFile,
    compilation: &Compilation,
    (options, has_lints): (&AnalysisOptions, bool),
    model: &Model,
    asked: RaceOptions,
) -> Vec<EntryAnswer> {
    let answers = |shader: Result<_, SourceError>| {
        // A missing compiler is an environment error, not a mistake in the shader.
        let refusal = shader.as_ref().err().map_or(Outcome::Input, |error| Outcome::from(&error.failure()));
        let is_part = file.is_found && matches!(&shader, Err(SourceError::NoEntryPoint { .. }));
        let mut lints = match &shader {
            Ok(shader) if has_lints => lint_findings(&file.path, shader),
            _ => Vec::new(),
        };
        let cause = shader.as_ref().err().map_or("not supported by the analysis", SourceError::cause);
        let (mut compiler, mut entry, mut assumed) = (None, None, Vec::new());
        if let Ok(SourceModule { compiler: by, entry: own, unset, .. }) = &shader {
            (compiler, entry) = (by.clone(), own.clone());
            assumed = unset.iter().map(|unset| format!("{}={}", unset.name, unset.value)).collect();
        }
        let answered = lines(&file.path, shader, options, model, asked);
        let answer = |(mut line, tests): (RaceLine, _)| {
            line.compiler.clone_from(&compiler);
            if line.verdict == RaceVerdict::Refused {
                line.cause = Some(cause.to_owned());
            }
            if let Some(entry) = entry.as_ref().filter(|_| line.entry.is_empty()) {
                line.entry.clone_from(entry);
            }
            // A module has one list for all its entry points.
            line.lints = std::mem::take(&mut lints);
            EntryAnswer { line, tests, refusal, is_skipped: is_part, assumed: assumed.clone() }
        };
        answered.into_iter().map(answer).collect::<Vec<_>>()
    };
    load_all(&file.path, compilation).into_iter().flat_map(answers).collect()
}

/// Returns the findings of `lint` in a module; none if it cannot be read, which its analysis reports.
fn lint_findings(file: &str, shader: &SourceModule) -> Vec<FindingRecord> {
    let Ok(module) = frontend::read_module(&shader.bytes) else { return Vec::new() };
    frontend::lint(&module).iter().map(|lint| lint::finding(file, &module, lint)).collect()
}

/// Writes the answers in the requested format.
struct AnswerWriter<'a> {
    arguments: &'a Race,
    quiet: bool,
    out: Data,
    log: sarif::SarifCheckWriter<Vec<u8>>,
    page: Vec<explanation::ShaderAnswer>,
    emitted: Vec<String>,
    outcome: Outcome,
}

impl AnswerWriter<'_> {
    fn new(arguments: &Race, quiet: bool) -> AnswerWriter<'_> {
        AnswerWriter {
            arguments,
            quiet,
            out: Data::new(),
            log: sarif::SarifCheckWriter::new(Vec::new()),
            page: Vec::new(),
            emitted: Vec::new(),
            outcome: Outcome::Success,
        }
    }

    /// Writes an answer, or keeps it for formats that are one document.
    fn add(&mut self, answer: &EntryAnswer) -> Result<(), Failure> {
        let (format, line) = (self.arguments.format, &answer.line);
        if answer.is_skipped {
            return Ok(());
        }
        self.outcome.note(match line.verdict {
            RaceVerdict::Racy => Outcome::RuleBroken,
            RaceVerdict::Clean => Outcome::Success,
            RaceVerdict::Refused => answer.refusal,
            RaceVerdict::Undecided | RaceVerdict::NeedsInputs => Outcome::Environment,
        });
        if let Some(why) = line.why.as_ref().filter(|_| !self.quiet && format == RaceFormat::Json) {
            say(why);
        }
        if !answer.assumed.is_empty() && !self.quiet {
            let assumed = answer.assumed.join(", ");
            say(&format!(
                "{}: overrides without a value, assumed: {assumed}; set them with `--spec NAME=V`",
                line.file
            ));
        }
        if self.arguments.emit.is_some() {
            for (test, finding) in answer.tests.iter().zip(&line.findings) {
                match test {
                    Some(test) => self.emitted.push(litmus::print(test)),
                    None if self.quiet => {}
                    None => say(&format!(
                        "no litmus test with two invocations shows this finding: {}",
                        finding.message
                    )),
                }
            }
            return Ok(());
        }
        match format {
            RaceFormat::Json => Lines::new(&mut self.out).write(line).map_err(cannot_print)?,
            RaceFormat::Text => self.out.print(&text(line))?,
            RaceFormat::Sarif => {
                self.log.findings(&line.file, &line.findings);
                self.log.needs(&line.file, &line.needs);
            }
            RaceFormat::Html => self.page.push(page_of(line)),
        }
        Ok(())
    }

    /// Writes what waits for the last answer; returns the exit code.
    fn finish(mut self) -> Result<Outcome, Failure> {
        match (&self.arguments.out, &self.emitted[..]) {
            (Some(path), all) => {
                for (number, text) in all.iter().enumerate() {
                    write_file(&numbered(path, number), text.as_bytes())?;
                }
            }
            (None, [first, others @ ..]) => {
                self.out.print(first)?;
                if !others.is_empty() && !self.quiet {
                    say(&format!("{} more: write all to files with `--out FILE`", others.len()));
                }
            }
            (None, []) => {}
        }
        match self.arguments.format {
            RaceFormat::Sarif if self.arguments.emit.is_none() => {
                let written = self.log.written().map_err(cannot_print)?;
                self.out.print(&String::from_utf8_lossy(&written))?;
            }
            RaceFormat::Html if self.arguments.emit.is_none() => {
                self.out.print(&explanation::shaders(&self.page))?;
            }
            _ => {}
        }
        Ok(self.outcome)
    }
}
