//! `convert`: a test in another syntax.

use campaign::inputs;
use campaign::source::Loaded;
use litmus::convert::{to_khronos, to_vulkan};
use litmus::glsl::{Glsl, to_glsl};

use crate::arguments::{Convert, Syntax};
use crate::exit::{Failure, Outcome};
use crate::output::Data;
use crate::source::{self, is_shader};

/// Runs the command.
///
/// # Errors
/// When the test cannot be read, or the syntax cannot say it.
pub fn convert(arguments: &Convert) -> Result<Outcome, Failure> {
    if is_shader(&arguments.test) {
        return kernel(arguments);
    }
    if !arguments.kernel.is_empty() || arguments.unroll.is_some() {
        return Err(Failure::input_message("what shaders are given needs a shader"));
    }
    let loaded = one(&arguments.test)?;
    let converted = match arguments.to {
        Syntax::Litmus => to_vulkan(&loaded.test).map(|test| litmus::print(&test)),
        Syntax::Khronos => to_khronos(&loaded.test).map(|test| litmus::print(&test)),
        Syntax::Glsl => to_vulkan(&loaded.test).and_then(|test| to_glsl(&test)).map(|glsl| shader(&glsl)),
    };
    let converted = converted
        .map_err(|error| Failure::input_message(format!("convert {}: {error}", loaded.source.file)))?;
    // Its header is what others wrote.
    Data::new().print(&results::show::block(&converted))?;
    Ok(Outcome::Success)
}

/// A shader, under a comment that says how to ask about it.
pub fn shader(glsl: &Glsl) -> String {
    let claim = glsl.claim.as_ref().map(|claim| format!(" --assert '{claim}'")).unwrap_or_default();
    let Glsl { source, workgroups, subgroup_size, .. } = glsl;
    format!(
        "// vk-litmus check FILE.comp --grid {workgroups} --subgroup-size {subgroup_size}{claim}\n{source}"
    )
}

/// Prints the litmus test of a shader: of a kernel with values that nobody gave the one in which they are 0.
fn kernel(arguments: &Convert) -> Result<Outcome, Failure> {
    if arguments.to != Syntax::Litmus {
        return Err(Failure::not_available("shaders but as --to litmus"));
    }
    let file = &arguments.test;
    let wrong = |what: String| Failure::input_message(format!("{file}:{what}"));
    let shader = source::load(file, &arguments.kernel).map_err(|error| error.failure())?;
    let module = frontend::read(&shader.module).map_err(|refusal| wrong(refusal.to_string()))?;
    let options = arguments.kernel.options(arguments.unroll)?;
    let lifted = frontend::lift(&module, &options).map_err(|refusal| wrong(refusal.to_string()))?;
    if let Some(case) = lifted.cases.first() {
        Data::new().print(&litmus::print(&case.test))?;
    }
    Ok(Outcome::Success)
}

/// The only test that an argument names.
///
/// # Errors
/// When it names none or several, or what it names is no test.
pub fn one(argument: &str) -> Result<Loaded, Failure> {
    let mut sources = inputs::of_argument(argument);
    match (sources.pop(), sources.is_empty()) {
        (Some(source), true) => source.load().map_err(|rejected| {
            let (source, rejection) = *rejected;
            rejection.failure(&source.file)
        }),
        _ => Err(Failure::input_message(format!("`{argument}` names several tests: name one"))),
    }
}
