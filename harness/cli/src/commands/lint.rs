//! `lint`: findings in a shader that hold for every dispatch.

use frontend::LintRule;
use results::wire::{FindingRecord, LINT_SCHEMA, LintLine};
use vk_litmus::{ShaderModule, program};

use crate::arguments::{LintArguments, ListFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{print_message, print_text};

/// Runs the command.
///
/// # Errors
/// Returns an error if a shader cannot be read.
pub fn lint(arguments: &LintArguments, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.shaders.is_empty() {
        let rule = |rule: LintRule| format!("lint:{}  {} ({})\n", rule.name(), rule.subject(), rule.clause());
        let rules = LintRule::ALL.into_iter().map(rule);
        return print_text(&rules.collect::<String>());
    }
    let mut text = String::new();
    let compilation = program::compile_options(arguments.kernel.compilation()?);
    for file in &arguments.shaders {
        let mut findings: Vec<FindingRecord> = Vec::new();
        for shader in ShaderModule::load(file, &compilation) {
            let shader = shader.map_err(program::into_failure)?;
            let found = shader.lint().map_err(program::into_failure)?;
            if let Some(compiler) = shader.compiler().filter(|_| !quiet) {
                print_message(&format!("{file}: compiled by {compiler}"));
            }
            // A function that several entry points call is in the module of each.
            for finding in found {
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        if arguments.format == ListFormat::Json {
            let line = LintLine { schema: LINT_SCHEMA.to_owned(), file: file.clone(), findings };
            let line = serde_json::to_string(&line).map_err(Failure::environment_error)?;
            text += &format!("{line}\n");
            continue;
        }
        if findings.is_empty() && !quiet {
            let rules = LintRule::ALL.len();
            print_message(&format!("{file}: no finding by {rules} rules; `race` executes the shader"));
        }
        for finding in &findings {
            let place = finding.at.first();
            let file = place.and_then(|place| place.file.as_deref()).unwrap_or(file);
            let line = place.and_then(|place| place.line).map_or(String::new(), |line| format!(":{line}"));
            text += &format!("{file}{line}: {}: {}\n", finding.kind, finding.message);
        }
    }
    print_text(&text)
}
