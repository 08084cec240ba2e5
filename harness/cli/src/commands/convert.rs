//! `convert`: a test in another syntax.

use crate::arguments::{Convert, Syntax};
use crate::exit::{Failure, Outcome};
use crate::inputs::{self, Loaded};
use crate::output::Data;

/// Runs the command.
///
/// # Errors
/// When the test cannot be read or the syntax is not available.
pub fn convert(arguments: &Convert) -> Result<Outcome, Failure> {
    match arguments.to {
        Syntax::Litmus => {}
        Syntax::Khronos => return Err(Failure::not_available("`--to khronos`")),
    }
    let loaded = one(&arguments.test)?;
    Data::new().print(&litmus::print(&loaded.test))?;
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
