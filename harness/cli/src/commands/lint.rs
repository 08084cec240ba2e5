//! `lint`: findings in a shader that hold for every dispatch.

use campaign::shader::placed;
use campaign::shader::source::{is_shader, load_all};
use frontend::Lint;
use results::wire::{FindingPlace, FindingRecord, LINT_SCHEMA, LintLine};

use crate::arguments::{LintArguments, ListFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{print_text, say};

/// Runs the command.
///
/// # Errors
/// Returns an error if a shader cannot be read.
pub fn lint(arguments: &LintArguments, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.shaders.is_empty() {
        let rules = frontend::RULES.iter();
        let rules = rules.map(|(name, about, clause)| format!("lint:{name}  {about} ({clause})\n"));
        return print_text(&rules.collect::<String>());
    }
    let mut text = String::new();
    let compilation = arguments.kernel.compilation()?;
    for file in &arguments.shaders {
        if !is_shader(file) {
            return Err(Failure::input_message(format!(
                "{file}: unknown shader extension; expected .comp or another GLSL stage, .hlsl, .compute, .slang, .wgsl, .spv or .spvasm"
            )));
        }
        let wrong = |what: String| Failure::input_message(format!("{file}:{what}"));
        let mut findings: Vec<FindingRecord> = Vec::new();
        for shader in load_all(file, &compilation) {
            let shader = shader.map_err(|error| error.failure())?;
            let module =
                frontend::read_module(&shader.bytes).map_err(|refusal| wrong(refusal.to_string()))?;
            if module.has_no_entry_point() {
                return Err(Failure::input_message(format!("{file}: the module has no entry point")));
            }
            if let Some(compiler) = shader.compiler.as_ref().filter(|_| !quiet) {
                say(&format!("{file}: compiled by {compiler}"));
            }
            for lint in frontend::lint(&module) {
                let found = finding(file, &module, &lint);
                // Functions that several entry points call are in several modules.
                if !findings.contains(&found) {
                    findings.push(found);
                }
            }
        }
        if arguments.format == ListFormat::Json {
            let line = LintLine { schema: LINT_SCHEMA.to_owned(), file: file.clone(), findings };
            let line = serde_json::to_string(&line).map_err(Failure::environment_error)?;
            text += &format!("{line}\n");
            continue;
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

/// Returns a finding with its place in the source.
pub fn finding(file: &str, module: &frontend::SpirvModule, lint: &Lint) -> FindingRecord {
    let (file, line) = placed(file, module, lint.at.line, lint.at.place);
    FindingRecord::new(
        &format!("lint:{}", lint.rule),
        format!("{} ({})", lint.message, lint.clause),
        vec![FindingPlace { file: Some(file), line, invocation: None, access: None }],
    )
}
