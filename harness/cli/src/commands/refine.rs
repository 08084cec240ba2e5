//! `refine`: compares shaders before and after a compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use campaign::parallel::process_in_order_on;
use campaign::shader::open_memory::{OpenTerm, OpenTerms};
use campaign::shader::refine::{
    CompilerRefinement, RefineRequest, RefineSubject, SubjectError, compare_files, split_by_workgroup,
};
use campaign::shader::source::{Compilation, is_shader};
use campaign::temporary::TemporaryFolder;
use campaign::{inputs, models};
use results::wire::{FindingPlace, RefineLine, RefineVerdict};
use results::write::sarif;

use super::race::files::collect_shader_files;
use super::race::summary::FileBar;
use crate::arguments::{Refine, RefineFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, output_failure, print_diagnostic, print_message};

/// Upper bound on the broken shaders of a command that are reduced.
const MAX_REDUCED: usize = 8;
/// Upper bound on the causes that the table lists.
const MAX_CAUSES: usize = 20;

/// Runs the command.
///
/// # Errors
/// Returns an error if an input is invalid; a shader that --through refuses is reported, and the command
/// continues.
pub fn refine(arguments: &Refine, quiet: bool) -> Result<Outcome, Failure> {
    let options = arguments.kernel.to_options(arguments.unroll)?;
    let compilation = arguments.kernel.compilation()?;
    let model = models::load(&arguments.model)?.model;
    let request = RefineRequest {
        timeout: arguments.timeout,
        inputs: arguments.kernel.input_mode(),
        open_memory: parse_open_terms(&arguments.open)?,
    };
    let mut output = ComparisonWriter::new(arguments.format);
    if arguments.through.is_empty() {
        let [before, after] = &arguments.shaders[..] else {
            return Err(Failure::input_message(format!(
                "{} shaders; expected two, before and after a compiler: pass `BEFORE AFTER`, or `--through 'spirv-opt -O {{in}} -o {{out}}'`",
                arguments.shaders.len()
            )));
        };
        output.add(compare_files(before, after, &compilation, &options, &model, &request)?)?;
        return output.finish();
    }
    for command in &arguments.through {
        if !["{in}", "{source}"].iter().any(|input| command.contains(input)) || !command.contains("{out}") {
            return Err(Failure::input_message(format!(
                "--through `{command}`: no {{in}} or no {{out}}; expected both: pass 'spirv-opt -O {{in}} -o {{out}}'"
            )));
        }
    }
    let folder = TemporaryFolder::create().map_err(Failure::environment_error)?;
    let CollectedSubjects { subjects, unsupported } =
        collect_subjects(arguments, &compilation, folder.path())?;
    let pairs: Vec<(&RefineSubject, &String)> =
        subjects.iter().flat_map(|one| arguments.through.iter().map(move |command| (one, command))).collect();
    let workers = arguments.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |jobs| jobs.get() as usize,
    );
    let is_many = pairs.len() > 1 && !quiet;
    let bar = FileBar::new(pairs.len(), is_many);
    let compiler =
        CompilerRefinement { compilation: &compilation, options: &options, model: &model, request: &request };
    let compare = |(subject, command): &(&RefineSubject, &String)| {
        let lines = compiler.compare(subject, command);
        bar.advance(&subject.name);
        lines
    };
    let mut next = pairs.iter();
    let mut reduced: BTreeMap<&str, usize> = BTreeMap::new();
    let deliver = |lines: Result<Vec<RefineLine>, Failure>| {
        let is_broken =
            |lines: &Vec<RefineLine>| lines.iter().any(|line| line.verdict == RefineVerdict::Breaks);
        let lines = match (lines, next.next()) {
            (Ok(mut lines), Some((subject, command))) if is_broken(&lines) => {
                let count = reduced.entry(command).or_default();
                *count += 1;
                let done = match *count <= MAX_REDUCED {
                    true => compiler.reduce(subject, command, &mut lines),
                    false => Ok(()),
                };
                done.map(|()| lines)
            }
            (lines, _) => lines,
        };
        bar.suspend(|| match lines {
            Ok(lines) => output.add(lines),
            Err(failure) => {
                output.outcome.escalate_to(Outcome::from(&failure));
                print_diagnostic(failure.report());
                Ok(())
            }
        })
    };
    process_in_order_on(workers, &pairs, compare, deliver)?;
    bar.finish();
    if is_many {
        print_message(&format_table(&output.lines, &unsupported));
    }
    output.finish()
}

/// The shaders to compile, and the number of tests without a shader form, by cause.
struct CollectedSubjects {
    subjects: Vec<RefineSubject>,
    unsupported: BTreeMap<String, usize>,
}

/// Returns the shaders that the arguments name. Tests are printed below `folder`.
fn collect_subjects(
    arguments: &Refine,
    compilation: &Compilation,
    folder: &Path,
) -> Result<CollectedSubjects, Failure> {
    let is_test = |argument: &&String| !Path::new(argument).is_dir() && !is_shader(argument);
    let (tests, shaders): (Vec<&String>, Vec<&String>) = arguments.shaders.iter().partition(is_test);
    let shaders: Vec<String> = shaders.into_iter().cloned().collect();
    let files = collect_shader_files(&shaders, compilation)?;
    let mut subjects: Vec<RefineSubject> =
        files.iter().map(|file| RefineSubject::from_shader(&file.path)).collect();
    let mut unsupported: BTreeMap<String, usize> = BTreeMap::new();
    if tests.is_empty() && arguments.suite.is_none() {
        if subjects.is_empty() {
            return Err(Failure::input_message(
                "no shaders and no tests; expected files, folders or ids: pass a shader, or `--suite full`"
                    .to_owned(),
            ));
        }
        return Ok(CollectedSubjects { subjects, unsupported });
    }
    let tests: Vec<String> = tests.into_iter().cloned().collect();
    // GLSL cannot express variants, which select the form of a kernel.
    let mut names = BTreeSet::new();
    for source in inputs::collect(&tests, arguments.suite.as_deref(), None, || Ok(Vec::new()))? {
        let loaded = source.load().map_err(|rejected| rejected.failure)?;
        let name = loaded.source.id.split('@').next().unwrap_or_default().to_owned();
        if !names.insert(name.clone()) {
            continue;
        }
        let parts = match arguments.open.is_empty() {
            true => vec![(name, loaded.test)],
            false => split_by_workgroup(&name, &loaded.test),
        };
        for (name, test) in parts {
            match RefineSubject::from_test(&name, &test, folder) {
                Ok(subject) => subjects.push(subject),
                Err(SubjectError::Convert(why)) => *unsupported.entry(why.to_string()).or_default() += 1,
                Err(SubjectError::Write(failure)) => return Err(failure),
            }
        }
    }
    Ok(CollectedSubjects { subjects, unsupported })
}

/// Prints comparisons in a format, and keeps the most severe exit code.
struct ComparisonWriter {
    format: RefineFormat,
    output: StandardOutput,
    log: sarif::SarifCheckWriter<Vec<u8>>,
    lines: Vec<RefineLine>,
    outcome: Outcome,
}

impl ComparisonWriter {
    fn new(format: RefineFormat) -> ComparisonWriter {
        ComparisonWriter {
            format,
            output: StandardOutput::new(),
            log: sarif::SarifCheckWriter::new(Vec::new()),
            lines: Vec::new(),
            outcome: Outcome::Success,
        }
    }

    fn add(&mut self, lines: Vec<RefineLine>) -> Result<(), Failure> {
        for line in lines {
            self.outcome.escalate_to(outcome_of_verdict(line.verdict));
            match self.format {
                RefineFormat::Json => {
                    let text = serde_json::to_string(&line).map_err(Failure::environment_error)?;
                    self.output.print(&format!("{text}\n"))?;
                }
                RefineFormat::Text => self.output.print(&format_comparison(&line))?,
                RefineFormat::Sarif => self.log.add_comparison(&line),
            }
            self.lines.push(line);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome, Failure> {
        if self.format == RefineFormat::Sarif {
            let written = self.log.finish_into_inner().map_err(output_failure)?;
            self.output.print(&String::from_utf8_lossy(&written))?;
        }
        Ok(self.outcome)
    }
}

/// Parses `--open`.
///
/// # Errors
/// If a word does not name a descriptor.
pub fn parse_open_terms(words: &[String]) -> Result<Option<OpenTerms>, Failure> {
    if words.is_empty() {
        return Ok(None);
    }
    if words.iter().any(|word| word == "all") {
        return Ok(Some(None));
    }
    let parse = |word: &String| {
        OpenTerm::parse(word).ok_or_else(|| {
            Failure::input_message(format!(
                "--open {word}: no descriptor; expected `all`, SET.BINDING or SET.BINDING[INDEX]: pass `--open 0.1`"
            ))
        })
    };
    Ok(Some(Some(words.iter().map(parse).collect::<Result<_, _>>()?)))
}

fn outcome_of_verdict(verdict: RefineVerdict) -> Outcome {
    match verdict {
        RefineVerdict::Refines | RefineVerdict::Stronger => Outcome::Success,
        RefineVerdict::Breaks => Outcome::RuleBroken,
        RefineVerdict::Unknown | RefineVerdict::Failed => Outcome::Environment,
    }
}

fn format_comparison(line: &RefineLine) -> String {
    let format_position = |place: &FindingPlace| {
        let line = place.line.map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line}", place.file.as_deref().unwrap_or("?"))
    };
    let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
    let world = match line.open.is_empty() {
        true => String::new(),
        false => format!(" (open: {})", line.open.join(", ")),
    };
    let mut text = format!("{}{entry}: {}{world}: {}\n", line.before, line.verdict.name(), line.reason);
    if let Some(difference) = &line.difference {
        for step in &difference.environment {
            text += &format!("  others: {step}\n");
        }
        if let Some(at) = &difference.before {
            text += &format!("  before: {}\n", format_position(at));
        }
        if let Some(at) = &difference.after {
            text += &format!("  after: {}\n", format_position(at));
        }
    }
    if line.verdict == RefineVerdict::Unknown {
        text += "  to decide it: inputs that the line names, a longer --timeout, a larger --unroll, a smaller --grid, or fewer open descriptors\n";
    }
    if let Some(reduced) = &line.reduced {
        text += &format!("  shortest command that breaks it: {reduced}\n");
    }
    if let Some(smallest) = &line.smallest {
        text += "  smallest test that it breaks:\n";
        smallest.lines().for_each(|line| text += &format!("    {line}\n"));
    }
    text
}

/// Returns the number of entry points by command and verdict, and the causes of open answers.
fn format_table(lines: &[RefineLine], unsupported: &BTreeMap<String, usize>) -> String {
    let verdicts = RefineVerdict::ALL;
    let mut commands: Vec<&str> = Vec::new();
    for line in lines {
        if !commands.contains(&line.after.as_str()) {
            commands.push(&line.after);
        }
    }
    let heads = verdicts.map(|verdict| format!("{:>9}", verdict.name())).concat();
    let mut text = format!("{heads}  seconds  command\n");
    for command in commands {
        let command_lines: Vec<&RefineLine> = lines.iter().filter(|line| line.after == command).collect();
        for verdict in verdicts {
            text += &format!("{:>9}", command_lines.iter().filter(|line| line.verdict == verdict).count());
        }
        let micros: u64 = command_lines.iter().map(|line| line.micros).sum();
        text += &format!("{:>9.1}  {command}\n", micros as f64 / 1e6);
    }
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        if let Some(cause) = &line.cause {
            *causes.entry(format!("{}: {cause}", line.verdict.name())).or_default() += 1;
        }
    }
    for (why, count) in unsupported {
        *causes.entry(format!("not compared: {why}")).or_default() += count;
    }
    let mut causes: Vec<(String, usize)> = causes.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (cause, count) in causes.iter().take(MAX_CAUSES) {
        text += &format!("{count:>9}  {cause}\n");
    }
    text.trim_end().to_owned()
}
