//! The library example in the user guide equals the program in the tree.

#[path = "../../../model/examples/stale_value.rs"]
#[expect(dead_code, reason = "the program around the function is not called")]
mod stale_value;

use stale_value::stale_value_is_forbidden;

/// Returns the block of the guide with the contents of a file.
fn block(file: &str) -> String {
    let guide = include_str!("../../../../docs/guide.md");
    let start = guide.find(&format!(" file={file}\n")).unwrap();
    let (_, block) = guide[start..].split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_library_example_of_the_guide() {
    let example = include_str!("../../../model/examples/stale_value.rs");
    let (_, code) = example.split_once("// The guide begins.\n").unwrap();
    let (code, _) = code.split_once("// The guide ends.").unwrap();
    assert_eq!(block("library.rs"), code);

    assert_eq!(stale_value_is_forbidden(&block("mended.litmus")), Ok(true));
    assert_eq!(stale_value_is_forbidden(&block("handoff.litmus")), Ok(false));
}
