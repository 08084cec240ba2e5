//! `convert`: a test in another syntax.

use campaign::inputs;
use campaign::source::Loaded;
use litmus::convert::{to_khronos, to_vulkan};

use crate::arguments::{Convert, Syntax};
use crate::exit::{Failure, Outcome};
use crate::output::Data;

/// Runs the command.
///
/// # Errors
/// When the test cannot be read, or the syntax cannot say it.
pub fn convert(arguments: &Convert) -> Result<Outcome, Failure> {
    let loaded = one(&arguments.test)?;
    let converted = match arguments.to {
        Syntax::Litmus => to_vulkan(&loaded.test),
        Syntax::Khronos => to_khronos(&loaded.test),
    };
    let converted = converted
        .map_err(|error| Failure::input_message(format!("convert {}: {error}", loaded.source.file)))?;
    // Its header is what others wrote.
    Data::new().print(&results::show::block(&litmus::print(&converted)))?;
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
