//! The example of a library in the user guide: the text between the marks is the guide's.

// The guide begins.
fn stale_value_is_forbidden(text: &str) -> Result<bool, String> {
    let test = litmus::parse(text, "mended.litmus").map_err(|errors| errors.to_string())?;
    let model =
        model::Model::shipped("vulkan").ok_or("no such model")?.map_err(|errors| errors.to_string())?;
    let prediction =
        model::predict(&test, &model, &model::Options::default()).map_err(|error| error.to_string())?;
    // The question of the test, `exists (P1:r0 == 1 /\ P1:r1 == 0)`: does some execution of a race-free program meet it?
    Ok(prediction.race == litmus::Race::Free && prediction.meets == Some(false))
}
// The guide ends.

/// A block of the guide by the file that it is.
fn block(file: &str) -> String {
    let guide = include_str!("../../../../docs/guide.md");
    let start = guide.find(&format!(" file={file}\n")).unwrap();
    let (_, block) = guide[start..].split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_library_example_of_the_guide() {
    let here = include_str!("library.rs");
    let (_, code) = here.split_once("// The guide begins.\n").unwrap();
    let (code, _) = code.split_once("// The guide ends.").unwrap();
    assert_eq!(block("library.rs"), code);
    assert_eq!(stale_value_is_forbidden(&block("mended.litmus")), Ok(true));
    assert_eq!(stale_value_is_forbidden(&block("handoff.litmus")), Ok(false));
}
