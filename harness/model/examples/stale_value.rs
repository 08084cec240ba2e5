//! The example of the user guide, "Using it as a library": may the reader of these tests still see the old value?
//!
//!     cargo run -p model --example stale_value -- mended.litmus handoff.litmus

use std::process::ExitCode;

// The guide begins.
/// Whether the program is without races and its reader cannot see the old value any more.
pub fn stale_value_is_forbidden(text: &str) -> Result<bool, String> {
    let test = litmus::parse(text, "mended.litmus").map_err(|errors| errors.to_string())?;
    let model =
        model::Model::shipped("vulkan").ok_or("no such model")?.map_err(|errors| errors.to_string())?;
    let prediction =
        model::predict(&test, &model, &model::Options::default()).map_err(|error| error.to_string())?;
    // The question of the test, `exists (P1:r0 == 1 /\ P1:r1 == 0)`: does some execution of a race-free program meet it?
    Ok(prediction.race == litmus::Race::Free && prediction.meets == Some(false))
}
// The guide ends.

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        match text.and_then(|text| stale_value_is_forbidden(&text)) {
            Ok(true) => println!("{path}: forbidden"),
            Ok(false) => println!("{path}: allowed, or the program races"),
            Err(error) => {
                eprintln!("{path}: {error}");
                code = ExitCode::from(2);
            }
        }
    }
    code
}
