//! Suggestions for misspelled words.

use litmus::similar::most_similar;

#[test]
fn similar_words_are_suggested() {
    let known = ["vulkan", "vulkan-2019", "sc", "tso", "hsa", "div", "dv"];
    let cases = [
        ("vulkn", Some("vulkan")),
        ("vuklan", Some("vulkan")),
        ("vulkan2019", Some("vulkan-2019")),
        ("vulkan", None),
        ("x", None),
        ("xy", None),
        ("hsb", Some("hsa")),
        ("dev", Some("dv")),
        ("", None),
    ];
    for (word, expected) in cases {
        assert_eq!(most_similar(word, known), expected, "{word}");
    }
}
