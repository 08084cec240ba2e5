//! The library example of the documentation equals the program in the tree.

#[path = "../../../model/examples/stale_value.rs"]
#[expect(dead_code, reason = "the program around the function is not called")]
mod stale_value;

use stale_value::stale_value_is_forbidden;

/// The tutorial whose tests the example checks.
const TUTORIAL: &str = include_str!("../../../../docs/tutorials/model.md");

/// Returns the block of a page with the contents of a file.
fn block(page: &str, file: &str) -> String {
    let start = page.find(&format!(" file={file}\n")).unwrap();
    let (_, block) = page[start..].split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_library_example_of_the_documentation() {
    let example = include_str!("../../../model/examples/stale_value.rs");
    let (_, code) = example.split_once("// The guide begins.\n").unwrap();
    let (code, _) = code.split_once("// The guide ends.").unwrap();
    assert_eq!(block(include_str!("../../../../docs/howto/library.md"), "library.rs"), code);

    assert_eq!(stale_value_is_forbidden(&block(TUTORIAL, "mended.litmus")), Ok(true));
    assert_eq!(stale_value_is_forbidden(&block(TUTORIAL, "handoff.litmus")), Ok(false));
}
