//! Changes the text of a source where projects rely on their engine's build steps.
//!
//! Lines keep their numbers. Only directives change: a missing or symbolic `#version`, the extension for
//! includes that glslc enables, and sections of one file for several stages. (`shader_source::wgsl` has WGSL.)

use super::includes::has_include;
use super::scan::directive_argument;
use super::stage::{SourceStage, stage_of_name};

/// The version of GLSL for sources without one.
const DEFAULT_VERSION: &str = "460";

/// Returns the text of GLSL that compilers accept, or `None` if the text needs no change. `plain` is the text
/// without comments.
pub fn prepare_glsl(text: &str, plain: &str) -> Option<String> {
    let version = plain.lines().position(|line| directive_argument(line, "version").is_some());
    let symbolic = plain.lines().position(|line| line.trim_start().starts_with("#VERSION"));
    let given = version.and_then(|line| directive_argument(plain.lines().nth(line)?, "version"));
    let known = given.filter(|given| given.starts_with(|c: char| c.is_ascii_digit()));
    let has_earlier =
        version.is_some_and(|line| plain.lines().take(line).any(|line| !line.trim().is_empty()));
    let has_extension = plain.contains("GL_GOOGLE_include_directive");
    let includes = has_include(plain) && !has_extension;
    if known.is_some() && !has_earlier && !includes {
        return None;
    }
    // The directives that move to the start leave an empty line.
    let moved_lines = [version, symbolic];
    let mut changed = format!("#version {}\n", known.unwrap_or(DEFAULT_VERSION));
    if includes {
        changed.push_str("#extension GL_GOOGLE_include_directive : require\n");
    }
    changed.push_str("#line 1\n");
    for (number, line) in text.lines().enumerate() {
        if !moved_lines.contains(&Some(number)) {
            changed.push_str(line);
        }
        changed.push('\n');
    }
    Some(changed)
}

/// A section of a file: a stage, and the text with all other sections blank.
#[derive(Debug, PartialEq, Eq)]
pub struct StageSection {
    pub stage: &'static SourceStage,
    pub text: String,
}

/// Returns the sections of a file that are headed by `#[stage]` lines; empty for other files.
pub fn stage_sections(text: &str) -> Vec<StageSection> {
    let heading = |line: &str| Some(line.trim().strip_prefix("#[")?.strip_suffix(']')?.to_owned());
    if text.lines().find(|line| !line.trim().is_empty()).is_none_or(|line| heading(line).is_none()) {
        return Vec::new();
    }
    let stages = text.lines().filter_map(heading).filter_map(|name| stage_of_name(&name));
    let section = |stage: &'static SourceStage| {
        let mut is_inside = false;
        let mut section_text = String::with_capacity(text.len());
        for line in text.lines() {
            match heading(line) {
                Some(name) => is_inside = stage_of_name(&name) == Some(stage),
                None if is_inside => section_text.push_str(line),
                None => {}
            }
            section_text.push('\n');
        }
        StageSection { stage, text: section_text }
    };
    stages.map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glsl_gets_the_directives_of_a_build() {
        let include = "#extension GL_GOOGLE_include_directive : require\n";
        let cases = [
            ("#version 450\nvoid main() {}\n", None),
            ("void main() {}\n", Some("#version 460\n#line 1\nvoid main() {}\n".to_owned())),
            ("#VERSION\nvoid main() {}\n", Some("#version 460\n#line 1\n\nvoid main() {}\n".to_owned())),
            (
                "#version ENGINE\n#include \"a.h\"\n",
                Some(format!("#version 460\n{include}#line 1\n\n#include \"a.h\"\n")),
            ),
            (
                "#extension A : enable\n#version 450 core\n",
                Some("#version 450 core\n#line 1\n#extension A : enable\n\n".to_owned()),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(prepare_glsl(text, text), expected, "{text}");
        }
    }

    #[test]
    fn a_section_keeps_its_lines() {
        let found = stage_sections("\n#[vertex]\nv\n#[fragment]\nf\nf\n");
        let found: Vec<_> = found.iter().map(|one| (one.stage.extension, one.text.as_str())).collect();
        assert_eq!(found, [("vert", "\n\nv\n\n\n\n"), ("frag", "\n\n\n\nf\nf\n")]);
        assert_eq!(stage_sections("#version 450\n"), []);
    }
}
