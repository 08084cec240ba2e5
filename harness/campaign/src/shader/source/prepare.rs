//! Changes the text of a source where projects rely on their engine's build steps.
//!
//! Lines keep their numbers. Only directives change: a missing or symbolic `#version`, the extension for
//! includes that glslc enables, sections of one file for several stages, and directives of WGSL that naga
//! does not know.

use super::includes::has_include;
use super::scan::{directive, words};
use super::stage::{SourceStage, of_name};

/// The version of GLSL for sources without one.
const VERSION: &str = "460";

/// Returns the text of GLSL that compilers accept, or `None` if the text needs no change. `plain` is the text
/// without comments.
pub fn prepare_glsl(text: &str, plain: &str) -> Option<String> {
    let version = plain.lines().position(|line| directive(line, "version").is_some());
    let symbolic = plain.lines().position(|line| line.trim_start().starts_with("#VERSION"));
    let given = version.and_then(|line| directive(plain.lines().nth(line)?, "version"));
    let known = given.filter(|given| given.starts_with(|c: char| c.is_ascii_digit()));
    let has_earlier =
        version.is_some_and(|line| plain.lines().take(line).any(|line| !line.trim().is_empty()));
    let has_extension = plain.contains("GL_GOOGLE_include_directive");
    let includes = has_include(plain) && !has_extension;
    if known.is_some() && !has_earlier && !includes {
        return None;
    }
    // The directives that move to the start leave an empty line.
    let dropped = [version, symbolic];
    let mut changed = format!("#version {}\n", known.unwrap_or(VERSION));
    if includes {
        changed.push_str("#extension GL_GOOGLE_include_directive : require\n");
    }
    changed.push_str("#line 1\n");
    for (number, line) in text.lines().enumerate() {
        if !dropped.contains(&Some(number)) {
            changed.push_str(line);
        }
        changed.push('\n');
    }
    Some(changed)
}

/// A section of a file: a stage, and the text with all other sections blank.
#[derive(Debug, PartialEq, Eq)]
pub struct StageSection {
    /// The stage.
    pub stage: &'static SourceStage,
    /// The text.
    pub text: String,
}

/// Returns the sections of a file that are headed by `#[stage]` lines; empty for other files.
pub fn sections(text: &str) -> Vec<StageSection> {
    let heading = |line: &str| Some(line.trim().strip_prefix("#[")?.strip_suffix(']')?.to_owned());
    if text.lines().find(|line| !line.trim().is_empty()).is_none_or(|line| heading(line).is_none()) {
        return Vec::new();
    }
    let stages = text.lines().filter_map(heading).filter_map(|name| of_name(&name));
    let section = |stage: &'static SourceStage| {
        let mut is_inside = false;
        let mut own = String::with_capacity(text.len());
        for line in text.lines() {
            match heading(line) {
                Some(name) => is_inside = of_name(&name) == Some(stage),
                None if is_inside => own.push_str(line),
                None => {}
            }
            own.push('\n');
        }
        StageSection { stage, text: own }
    };
    stages.map(section).collect()
}

/// Returns a text of WGSL without the directives that naga does not know, or `None` if it has none. They
/// only permit language features and set the severity of diagnostics.
pub fn without_wgsl_directives(text: &str, plain: &str) -> Option<String> {
    let is_dropped = |line: &str| {
        let line = line.trim();
        line.ends_with(';')
            && match words(line).next() {
                Some("diagnostic") => line.starts_with("diagnostic"),
                Some("requires") => true,
                // Naga refuses these names, although it supports subgroup operations without them.
                Some("enable") => words(line)
                    .skip(1)
                    .all(|name| name.starts_with("subgroups") || name.starts_with("chromium")),
                _ => false,
            }
    };
    let mut is_changed = false;
    let mut changed = String::with_capacity(text.len());
    for (line, plain) in text.lines().zip(plain.lines()) {
        if is_dropped(plain) {
            is_changed = true;
        } else {
            changed.push_str(line);
        }
        changed.push('\n');
    }
    is_changed.then_some(changed)
}

/// A pipeline-overridable constant of WGSL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its name.
    pub name: String,
    /// Its type; empty if it is inferred.
    pub kind: String,
    /// Its number in `@id`.
    pub id: Option<String>,
    /// True if the source has no value for it.
    pub is_unset: bool,
}

/// Returns the overrides of a text of WGSL without comments.
pub fn overrides(plain: &str) -> Vec<Override> {
    let mut found = Vec::new();
    for (statement, _) in plain.match_indices("override").map(|(at, word)| (at, word.len())) {
        let before = plain[..statement].trim_end();
        let rest = &plain[statement + "override".len()..];
        let starts = before.is_empty() || before.ends_with([';', '}', ')']);
        if !starts || !rest.starts_with(char::is_whitespace) {
            continue;
        }
        let Some((declared, _)) = rest.split_once(';') else { continue };
        let (head, is_unset) = match declared.split_once('=') {
            Some((head, _)) => (head, false),
            None => (declared, true),
        };
        let (name, kind) = head.split_once(':').unwrap_or((head, ""));
        let attribute = before.rsplit_once('@').map(|(_, attribute)| attribute).unwrap_or_default();
        let id = attribute.strip_prefix("id").and_then(|id| words(id).next()).map(str::to_owned);
        let id = id.filter(|_| attribute.ends_with(')') && !attribute.contains([';', '}']));
        found.push(Override { name: name.trim().to_owned(), kind: kind.trim().to_owned(), id, is_unset });
    }
    found
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
        let found = sections("\n#[vertex]\nv\n#[fragment]\nf\nf\n");
        let found: Vec<_> = found.iter().map(|one| (one.stage.extension, one.text.as_str())).collect();
        assert_eq!(found, [("vert", "\n\nv\n\n\n\n"), ("frag", "\n\n\n\nf\nf\n")]);
        assert_eq!(sections("#version 450\n"), []);
    }

    #[test]
    fn overrides_have_names_types_and_values() {
        let text = "override a: u32;\n@id(7) override b: f32 = 2.0; override c = 1u; fn override_x() {}";
        let found: Vec<String> = (overrides(text).iter())
            .map(|one| {
                format!("{}:{}:{}:{}", one.name, one.kind, one.id.as_deref().unwrap_or("-"), one.is_unset)
            })
            .collect();
        assert_eq!(found, ["a:u32:-:true", "b:f32:7:false", "c::-:false"]);
    }

    #[test]
    fn directives_of_wgsl_are_dropped() {
        let text = "enable f16;\nenable subgroups;\ndiagnostic(off, x);\nfn f() {}\n";
        let expected = "enable f16;\n\n\nfn f() {}\n";
        assert_eq!(without_wgsl_directives(text, text).as_deref(), Some(expected));
        assert_eq!(without_wgsl_directives("enable f16;\n", "enable f16;\n"), None);
    }
}
