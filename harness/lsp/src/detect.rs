//! The language of a document by its name, the editor's id, or its keys.

use campaign::shader::source::is_shader;
use editor::DocumentLanguage;
use results::expectation::ExpectationKind;

/// Returns the language of a document by the editor's id, its name, and for TOML its keys.
///
/// `None` for documents that the server ignores.
pub fn detect_language(path: &str, id: &str, text: &str) -> Option<DocumentLanguage> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let has_suffix = |end: &str| name.ends_with(end);
    let in_suites = || path.rsplit(['/', '\\']).nth(1) == Some("suites");
    match id {
        "litmus" => return Some(DocumentLanguage::Litmus),
        "cat" => return Some(DocumentLanguage::Cat),
        "vk-litmus-expectations" => return Some(DocumentLanguage::Expectations),
        "vk-litmus-suite" => return Some(DocumentLanguage::Suite),
        "vk-litmus-stress" => return Some(DocumentLanguage::Stress),
        "vk-litmus-case" => return Some(DocumentLanguage::Case),
        _ => {}
    }
    if has_suffix(".litmus") || has_suffix(".test") && is_khronos(text) {
        Some(DocumentLanguage::Litmus)
    } else if has_suffix(".cat") {
        Some(DocumentLanguage::Cat)
    } else if ExpectationKind::ALL.iter().any(|kind| has_suffix(kind.name())) {
        Some(DocumentLanguage::Expectations)
    } else if has_suffix(".txt") && in_suites() {
        Some(DocumentLanguage::Suite)
    } else if has_suffix(".toml") {
        detect_toml_language(name, text)
    } else if !has_suffix(".spv") && is_shader(name) {
        Some(DocumentLanguage::Shader)
    } else {
        None
    }
}

/// Returns true for Khronos' dialect; other programs use the extension `.test` too.
fn is_khronos(text: &str) -> bool {
    text.lines().any(|line| {
        ["NEWWG", "NEWQF", "NEWSG", "NEWTHREAD"].iter().any(|keyword| line.trim_start().starts_with(keyword))
    })
}

/// Returns the language of a TOML file by its name or by keys that no other file has together.
fn detect_toml_language(name: &str, text: &str) -> Option<DocumentLanguage> {
    let has_key = |key: &str| {
        text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('=')))
    };
    if name.ends_with(".stress.toml") || has_key("pairing") && has_key("spin") {
        Some(DocumentLanguage::Stress)
    } else if name.ends_with(".case.toml") || has_key("module") && (has_key("grid") || has_key("entry")) {
        Some(DocumentLanguage::Case)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_show_their_language() {
        use DocumentLanguage::{Case, Cat, Expectations, Litmus, Shader, Stress, Suite};
        let cases = [
            ("a/MP.litmus", "plaintext", "", Some(Litmus)),
            ("untitled:1", "litmus", "", Some(Litmus)),
            ("a/x.test", "plaintext", "NEWWG\n", Some(Litmus)),
            ("a/x.test", "plaintext", "echo", None),
            ("m.cat", "", "", Some(Cat)),
            ("a/lavapipe-fails.txt", "plaintext", "", Some(Expectations)),
            ("a/suites/mine.txt", "plaintext", "", Some(Suite)),
            ("a/notes.txt", "plaintext", "", None),
            ("hard.stress.toml", "toml", "", Some(Stress)),
            ("s.toml", "toml", "pairing = \"any\"\nspin = [1, 2]\n", Some(Stress)),
            ("k.toml", "toml", "module = \"k.spv\"\ngrid = [1, 1, 1]\n", Some(Case)),
            ("Cargo.toml", "toml", "[package]\n", None),
            ("k.comp", "glsl", "", Some(Shader)),
            ("k.wgsl", "wgsl", "", Some(Shader)),
            ("k.spvasm", "", "", Some(Shader)),
            ("k.spv", "", "", None),
            ("main.rs", "rust", "", None),
        ];
        for (path, id, text, expected) in cases {
            assert_eq!(detect_language(path, id, text), expected, "{path} {id}");
        }
    }
}
