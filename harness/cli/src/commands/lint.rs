//! `lint`: findings in a shader that hold for every dispatch.

use campaign::parallel::process_in_order;
use campaign::shader::source::Compilation;
use lint::LintRule;
use results::escape::escape_block;
use results::wire::{FindingRecord, LINT_SCHEMA, LintLine};
use vk_litmus::{CompileOptions, Error, ErrorKind, program};

use super::race::files::{ShaderFile, collect_shader_files};
use super::race::summary::{CauseTable, FileBar};
use crate::arguments::{LintArguments, ListFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, print_message, print_text, report_rejected};

/// The findings of a file, without repetitions.
struct LintedFile {
    file: String,
    findings: Vec<FindingRecord>,
    compilers: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the arguments are invalid; a shader that cannot be read is reported, and the command continues.
pub fn lint(arguments: &LintArguments, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.shaders.is_empty() {
        let rule = |rule: LintRule| format!("lint:{}  {} ({})\n", rule.name(), rule.subject(), rule.clause());
        let rules = LintRule::ALL.into_iter().map(rule);
        return print_text(&rules.collect::<String>());
    }
    let compilation = Compilation { ignores_contents: true, ..arguments.kernel.compilation()? };
    let files = collect_shader_files(&arguments.shaders, &compilation)?;
    let compilation = program::compile_options(compilation);
    let is_many = files.len() > MAX_LISTED_FILES && !quiet;
    let bar = FileBar::new(files.len(), is_many);
    let (mut output, mut outcome, mut causes) =
        (StandardOutput::new(), Outcome::Success, CauseTable::default());
    let work = |file: &ShaderFile| {
        let linted = lint_file(file, &compilation);
        bar.advance(&file.path);
        // Other files of a folder include those without an entry point.
        let is_skipped = |error: &Error| file.is_found && error.kind() == ErrorKind::NoEntryPoint;
        (!linted.as_ref().is_err_and(is_skipped)).then_some(linted)
    };
    process_in_order(&files, work, |linted| {
        bar.suspend(|| {
            let linted = match linted {
                None => return Ok(()),
                Some(Ok(linted)) => linted,
                Some(Err(error)) => {
                    causes.add(&format!("refused: {}", error.cause().unwrap_or("invalid module")));
                    if arguments.format == ListFormat::Json {
                        let line =
                            serde_json::to_string(error.record()).map_err(Failure::environment_error)?;
                        output.print(&format!("{line}\n"))?;
                    }
                    report_rejected(&mut outcome, &program::into_failure(error));
                    return Ok(());
                }
            };
            causes.add_all(&linted.findings);
            let LintedFile { file, findings, compilers } = linted;
            let compiled = compilers.iter().filter(|_| !quiet);
            compiled.for_each(|compiler| print_message(&format!("{file}: compiled by {compiler}")));
            if arguments.format == ListFormat::Json {
                let line = LintLine { schema: LINT_SCHEMA.to_owned(), file, findings };
                let line = serde_json::to_string(&line).map_err(Failure::environment_error)?;
                return output.print(&format!("{line}\n"));
            }
            if findings.is_empty() && !quiet && !is_many {
                let rules = LintRule::ALL.len();
                print_message(&format!("{file}: no finding by {rules} rules; `race` executes the shader"));
            }
            findings.iter().try_for_each(|finding| output.print(&format_finding(&file, finding)))
        })
    })?;
    bar.finish();
    if is_many {
        print_message(&causes.to_text(&format!("{} shaders", files.len())));
    }
    Ok(outcome)
}

/// Upper bound on the files that are listed although they have no finding.
const MAX_LISTED_FILES: usize = 16;

fn lint_file(file: &ShaderFile, compilation: &CompileOptions) -> Result<LintedFile, Error> {
    let mut linted = LintedFile { file: file.path.clone(), findings: Vec::new(), compilers: Vec::new() };
    for shader in file.load(compilation) {
        let shader = shader?;
        // A function that several entry points call is in the module of each.
        for finding in shader.lint()? {
            if !linted.findings.contains(&finding) {
                linted.findings.push(finding);
            }
        }
        linted.compilers.extend(shader.compiler().map(str::to_owned));
    }
    Ok(linted)
}

fn format_finding(file: &str, finding: &FindingRecord) -> String {
    let place = finding.at.first();
    let source = place.and_then(|place| place.file.as_deref()).unwrap_or(file);
    let line = place.and_then(|place| place.line).map_or(String::new(), |line| format!(":{line}"));
    // Modules of an archive may have sources of one name.
    let module = if file.contains(".foz/") { format!("{file}: ") } else { String::new() };
    let text = format!("{module}{source}{line}: {}: {}\n", finding.kind, finding.message);
    escape_block(&text).into_owned()
}
