//! `convert`: a test in another syntax.

use std::path::{Component, Path, PathBuf};

use analysis::placed_refusal_text;
use campaign::inputs;
use campaign::repro::format_glsl_shader;
use campaign::shader::open_memory::resolve_open_terms;
use campaign::shader::source::{is_shader, load, shader_stem};
use campaign::source::TestSource;
use entry_point::AnalysisOptions;
use litmus::convert::{to_khronos, to_vulkan};
use litmus::glsl::to_glsl;
use litmus::syntax::{ForeignSyntax, read_foreign};

use super::refine::parse_open_terms;
use crate::arguments::{Convert, Syntax};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, create_folder, print_message, report_rejected, write_file};

/// Runs the command. A test that cannot be converted is reported, and the others are still converted.
///
/// # Errors
/// Returns an error if there is nothing to convert, or the output cannot be written.
pub fn convert(arguments: &Convert) -> Result<Outcome, Failure> {
    let (shaders, tests): (Vec<String>, Vec<String>) =
        arguments.tests.iter().cloned().partition(|argument| is_shader(argument));
    if shaders.is_empty() && (!arguments.kernel.is_empty() || arguments.unroll.is_some()) {
        return Err(Failure::input_message(
            "inputs of shaders (`--grid`, `--buffer` and others) need a shader file",
        ));
    }
    let sources = match tests.is_empty() {
        true => Vec::new(),
        false => inputs::collect(&tests, None, None, || Ok(Vec::new()))?,
    };
    let several = shaders.len() + sources.len() > 1;
    let mut outcome = Outcome::Success;
    let mut data = StandardOutput::new();
    let shaders = shaders.iter().map(|file| {
        let id = shader_stem(file).to_owned();
        (id, file.clone(), convert_shader(arguments, file))
    });
    let tests = sources.into_iter().map(|source| {
        let (id, file) = (source.id.clone(), source.file.clone());
        (id, file, convert_test(source, arguments.from, arguments.to).map(Some))
    });
    for (id, file, converted) in shaders.chain(tests) {
        let text = match converted {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(failure) => {
                report_rejected(&mut outcome, &failure);
                continue;
            }
        };
        match &arguments.out {
            // The header of the test is untrusted text.
            None if several => {
                data.print(&results::escape::escape_block(&arguments.to.with_title(&id, &text)))?
            }
            None => data.print(&results::escape::escape_block(&text))?,
            Some(folder) => write_file(&output_file(folder, &id, &file, arguments.to)?, text.as_bytes())?,
        }
    }
    Ok(outcome)
}

/// Converts a test and returns its text.
fn convert_test(source: TestSource, from: Option<ForeignSyntax>, to: Syntax) -> Result<String, Failure> {
    let file = source.file.clone();
    let test = match (from, &source.text) {
        (Some(syntax), Ok(text)) => read_foreign(text, &file, syntax).map_err(Failure::input)?,
        // A text that cannot be read is an error of the load too.
        _ => source.load().map_err(|rejected| rejected.failure)?.test,
    };
    let converted = match to {
        Syntax::Litmus => to_vulkan(&test).map(|test| litmus::print(&test)),
        Syntax::Khronos => to_khronos(&test).map(|test| litmus::print(&test)),
        Syntax::Glsl => {
            to_vulkan(&test).and_then(|test| to_glsl(&test)).map(|glsl| format_glsl_shader(&glsl))
        }
    };
    converted.map_err(|error| Failure::input_message(format!("convert {}: {error}", file)))
}

/// Returns the file for a test below a folder, and creates its parents.
fn output_file(folder: &Path, id: &str, file: &str, to: Syntax) -> Result<PathBuf, Failure> {
    let relative = Path::new(id);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Failure::input_message(format!(
            "{file}: `{id}` cannot be a file below {}",
            folder.display()
        )));
    }
    let mut name = folder.join(relative).into_os_string();
    name.push(to.extension());
    let path = PathBuf::from(name);
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    Ok(path)
}

impl Syntax {
    fn extension(self) -> &'static str {
        match self {
            Syntax::Litmus => ".litmus",
            Syntax::Khronos => ".test",
            Syntax::Glsl => ".comp",
        }
    }

    /// Prefixes a text with a comment that has the title.
    fn with_title(self, title: &str, text: &str) -> String {
        match self {
            Syntax::Litmus => format!("(* {title} *)\n{text}\n"),
            Syntax::Khronos | Syntax::Glsl => format!("// {title}\n{text}\n"),
        }
    }
}

/// Returns the litmus test of a shader, if it has one. Missing inputs are 0.
fn convert_shader(arguments: &Convert, file: &str) -> Result<Option<String>, Failure> {
    if arguments.to != Syntax::Litmus {
        return Err(Failure::input_message(format!(
            "{file}: a shader is converted to a litmus test only: pass `--to litmus`"
        )));
    }
    let to_failure =
        |refusal: &entry_point::Refusal| Failure::input_message(placed_refusal_text(file, refusal));
    let shader = load(file, &arguments.kernel.compilation()?).map_err(|error| error.to_failure())?;
    let options = shader.with_given_inputs(&arguments.kernel.to_options(arguments.unroll)?);
    let module = entry_point::inputs::read_bound_module(&shader.bytes, &options)
        .map_err(|refusal| to_failure(&refusal))?;
    let options = match parse_open_terms(&arguments.open)? {
        Some(terms) => {
            let parts = resolve_open_terms(file, &module, &options, &terms)?;
            refine::with_open_memory(&module, &options, parts)
        }
        None => options,
    };
    let lifted = symbolic::lift(&module, &options).map_err(|refusal| to_failure(&refusal))?;
    let text = lifted.cases.first().map(|case| litmus::print(&case.test));
    let whole = AnalysisOptions { keep_all: true, ..options };
    if let (Some(text), Ok(whole)) = (&text, symbolic::lift(&module, &whole))
        && whole.cases.first().is_some_and(|case| litmus::print(&case.test) != *text)
    {
        print_message(&format!(
            "{file}: left out: accesses to memory that one invocation alone uses; `--assert` keeps what it names"
        ));
    }
    Ok(text)
}
