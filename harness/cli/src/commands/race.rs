//! `race`: races and other undefined behaviour in shaders, over whole grids.

use campaign::compilers::kernels::numbered;
use campaign::shader::race::{Asked, lines, page_of};
use campaign::shader::source::load;
use frontend::AnalysisOptions;
use model::Model;
use results::wire::RaceVerdict;
use results::write::json::Lines;
use results::write::{race::text, sarif};

use crate::arguments::{Race, RaceFormat};
use crate::exit::{Failure, Outcome};

use crate::output::{Data, cannot_print, say, write_file};

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
    let (mut out, mut outcome) = (Data::new(), Outcome::Success);
    let (mut log, mut page) = (sarif::SarifCheckWriter::new(Vec::new()), Vec::new());
    let asked = Asked {
        walks: arguments.time,
        model: arguments.timeout,
        inputs: arguments.kernel.inputs(),
        save_case: arguments.save_case.as_deref(),
        smallest: arguments.emit.is_some(),
    };
    let mut emitted = Vec::new();
    for file in &arguments.shaders {
        let shader = load(file, &arguments.kernel.compilation());
        // A missing compiler is an environment error, not a mistake in the shader.
        let refusal = shader.as_ref().err().map_or(Outcome::Input, |error| Outcome::from(&error.failure()));
        for (line, tests) in lines(file, shader, &options, &model, asked) {
            outcome.note(match line.verdict {
                RaceVerdict::Racy => Outcome::RuleBroken,
                RaceVerdict::Clean => Outcome::Success,
                RaceVerdict::Refused => refusal,
                RaceVerdict::Undecided | RaceVerdict::NeedsInputs => Outcome::Environment,
            });
            if let Some(why) = line.why.as_ref().filter(|_| !quiet && arguments.format == RaceFormat::Json) {
                say(why);
            }
            if arguments.emit.is_some() {
                for (test, finding) in tests.iter().zip(&line.findings) {
                    match test {
                        Some(test) => emitted.push(litmus::print(test)),
                        None if quiet => {}
                        None => say(&format!(
                            "no litmus test with two invocations shows this finding: {}",
                            finding.message
                        )),
                    }
                }
                continue;
            }
            match arguments.format {
                RaceFormat::Json => Lines::new(&mut out).write(&line).map_err(cannot_print)?,
                RaceFormat::Text => out.print(&text(&line))?,
                RaceFormat::Sarif => {
                    log.findings(&line.file, &line.findings);
                    log.needs(&line.file, &line.needs);
                }
                RaceFormat::Html => page.push(page_of(&line)),
            }
        }
    }
    match (&arguments.out, &emitted[..]) {
        (Some(path), all) => {
            for (number, text) in all.iter().enumerate() {
                write_file(&numbered(path, number), text.as_bytes())?;
            }
        }
        (None, [first, others @ ..]) => {
            out.print(first)?;
            if !others.is_empty() && !quiet {
                say(&format!("{} more: write all to files with `--out FILE`", others.len()));
            }
        }
        (None, []) => {}
    }
    match arguments.format {
        RaceFormat::Sarif if arguments.emit.is_none() => {
            out.print(&String::from_utf8_lossy(&log.written().map_err(cannot_print)?))?;
        }
        RaceFormat::Html if arguments.emit.is_none() => out.print(&explanation::shaders(&page))?,
        _ => {}
    }
    Ok(outcome)
}
