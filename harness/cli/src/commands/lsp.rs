//! `lsp`: a language server on standard input and output.

use crate::exit::{Failure, Outcome};

/// Serves an editor until it ends the connection.
///
/// # Errors
/// Returns an error if the editor does not follow the protocol, or the connection fails.
pub fn lsp() -> Result<Outcome, Failure> {
    let program = std::env::current_exe().map_err(Failure::environment_error)?;
    match ::lsp::serve(program) {
        Ok(true) => Ok(Outcome::Success),
        // The protocol requires exit code 1 if the editor leaves without a shutdown request.
        Ok(false) => Ok(Outcome::RuleBroken),
        Err(error) => Err(Failure::environment_error(error)),
    }
}
