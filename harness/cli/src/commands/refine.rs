//! `refine`: compares shaders before and after a compiler.

use std::collections::BTreeMap;

use campaign::choice;
use campaign::shader::open::{OpenTerm, OpenTerms};
use campaign::shader::refine::{RefineRequest, compare_files, compare_through};
use results::wire::{FindingPlace, RefineLine, RefineVerdict};

use super::race::files::expand;
use crate::arguments::{ListFormat, Refine};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, complain, say};

/// Runs the command.
///
/// # Errors
/// Returns an error if an input is wrong; a refused shader of --through does not end the command.
pub fn refine(arguments: &Refine, quiet: bool) -> Result<Outcome, Failure> {
    let options = arguments.kernel.options(arguments.unroll)?;
    let compilation = arguments.kernel.compilation()?;
    let model = choice::load(&arguments.model)?.model;
    let request = RefineRequest {
        timeout: arguments.timeout,
        inputs: arguments.kernel.inputs(),
        open: open_terms(&arguments.open)?,
    };
    let mut output = Data::new();
    let mut outcome = Outcome::Success;
    let mut all = Vec::new();
    let mut show = |lines: Vec<RefineLine>, outcome: &mut Outcome| -> Result<(), Failure> {
        for line in lines {
            outcome.note(conclusion(line.verdict));
            output.print(&match arguments.format {
                ListFormat::Json => {
                    let text = serde_json::to_string(&line).map_err(Failure::environment_error)?;
                    format!("{text}\n")
                }
                ListFormat::Text => text_of(&line),
            })?;
            all.push(line);
        }
        Ok(())
    };
    match (&arguments.through, &arguments.shaders[..]) {
        (None, [before, after]) => {
            let lines = compare_files((before, after), &compilation, &options, &model, &request)?;
            show(lines, &mut outcome)?;
        }
        (None, shaders) => {
            return Err(Failure::input_message(format!(
                "{} shaders; expected two, before and after a compiler: pass `BEFORE AFTER`, or `--through 'spirv-opt -O {{in}} -o {{out}}'`",
                shaders.len()
            )));
        }
        (Some(command), shaders) => {
            if !command.contains("{in}") || !command.contains("{out}") {
                return Err(Failure::input_message(format!(
                    "--through `{command}`: no {{in}} or no {{out}}; expected both: pass 'spirv-opt -O {{in}} -o {{out}}'"
                )));
            }
            let files = expand(shaders)?;
            for file in &files {
                match compare_through(&file.path, command, &compilation, &options, &model, &request) {
                    Ok(lines) => show(lines, &mut outcome)?,
                    Err(failure) => {
                        outcome.note(Outcome::from(&failure));
                        complain(failure.report());
                    }
                }
            }
            if files.len() > 1 && !quiet {
                say(&table(&all));
            }
        }
    }
    Ok(outcome)
}

/// Parses `--open`.
///
/// # Errors
/// If a word is no descriptor.
pub fn open_terms(words: &[String]) -> Result<Option<OpenTerms>, Failure> {
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

fn conclusion(verdict: RefineVerdict) -> Outcome {
    match verdict {
        RefineVerdict::Refines | RefineVerdict::Stronger => Outcome::Success,
        RefineVerdict::Breaks => Outcome::RuleBroken,
        RefineVerdict::Unknown | RefineVerdict::Failed => Outcome::Environment,
    }
}

/// Returns the text of a comparison.
fn text_of(line: &RefineLine) -> String {
    let place = |place: &FindingPlace| {
        let line = place.line.map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line}", place.file.as_deref().unwrap_or("?"))
    };
    let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
    let world = match line.open.is_empty() {
        true => String::new(),
        false => format!(" (open: {})", line.open.join(", ")),
    };
    let mut text = format!("{}{entry}: {}{world}: {}\n", line.before, line.verdict.as_str(), line.reason);
    if let Some(difference) = &line.difference {
        for step in &difference.environment {
            text += &format!("  others: {step}\n");
        }
        if let Some(at) = &difference.before {
            text += &format!("  before: {}\n", place(at));
        }
        if let Some(at) = &difference.after {
            text += &format!("  after: {}\n", place(at));
        }
    }
    if line.verdict == RefineVerdict::Unknown {
        text += "  to decide it: inputs that the line names, a longer --timeout, a smaller --grid, or fewer open descriptors\n";
    }
    if let Some(reduced) = &line.reduced {
        text += &format!("  shortest command that breaks it: {reduced}\n");
    }
    text
}

/// Returns the number of entry points by verdict.
fn table(lines: &[RefineLine]) -> String {
    let mut counts: BTreeMap<RefineVerdict, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line.verdict).or_default() += 1;
    }
    let rows = counts.iter().map(|(verdict, count)| format!("{:<10}{count:>6}", verdict.as_str()));
    rows.chain([format!("{:<10}{:>6}", "all", lines.len())]).collect::<Vec<_>>().join("\n")
}
