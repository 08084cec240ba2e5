//! Rules on Rust code, such as which crates may use `ash`, print, or use `unsafe`. Comments and string
//! literals are ignored.

use std::collections::BTreeMap;

use super::edges::{ARCHITECTURE, Manifest};
use super::source::{Finding, SourceFile};
use crate::tests::{SLOW_TESTS, parse_name_list};

/// Rejects the Vulkan bindings outside the crate that wraps them.
pub fn ash_outside_device(file: &SourceFile) -> Vec<Finding> {
    if is_in_folder(file, "harness/device") {
        return Vec::new();
    }
    find_in_code(file, "`ash` belongs in harness/device alone", |line| {
        line.contains("ash::") && words(line).any(|word| word == "ash")
    })
}

/// Rejects printing outside the command line, the maintenance tasks and tests.
pub fn printing_in_libraries(file: &SourceFile) -> Vec<Finding> {
    let is_allowed = is_in_folder(file, "harness/cli")
        || is_in_folder(file, "ci/xtask")
        || file.path.ends_with("build.rs")
        || ["/tests/", "/benches/", "/examples/"].iter().any(|part| file.path.contains(part));
    if is_allowed {
        return Vec::new();
    }
    // The code after the first `#[cfg(test)]` of a file is its tests.
    let tests_start = blank_literals(&file.text)
        .lines()
        .position(|line| line.contains("#[cfg(test)]"))
        .unwrap_or(usize::MAX);
    find_in_code(file, "printing belongs in harness/cli", |line| {
        ["print!", "println!", "eprint!", "eprintln!", "dbg!"].iter().any(|call| line.contains(call))
    })
    .into_iter()
    .filter(|finding| finding.line <= tests_start)
    .collect()
}

/// Folders whose code passes messages, fixes and coverage on as values.
const TYPED_ANSWERS: [&str; 15] = [
    "harness/analysis/src",
    "harness/campaign/src/check",
    "harness/campaign/src/kinds/shader",
    "harness/campaign/src/shader",
    "harness/explanation/src",
    "harness/entry_point/src",
    "harness/refine/src",
    "harness/verdicts/src",
    "harness/lint/src",
    "harness/repair/src",
    "harness/symbolic/src",
    "harness/walk/src",
    "harness/web/src",
    "harness/cli/src/commands/race",
    "results/src",
];

/// Rejects code that reads a sentence of a finding, a fix or a coverage back.
pub fn parsed_sentences(file: &SourceFile) -> Vec<Finding> {
    if !TYPED_ANSWERS.iter().any(|folder| is_in_folder(file, folder)) {
        return Vec::new();
    }
    let tests_start = file.text.lines().position(|line| line.contains("#[cfg(test)]")).unwrap_or(usize::MAX);
    let is_sentence = |name: &str| {
        ["message", "coverage", "fix", "words", "limit", "what", "why", "reason", "refusal"].contains(&name)
    };
    let readers = [
        "starts_with",
        "ends_with",
        "contains",
        "replace",
        "strip_prefix",
        "strip_suffix",
        "split",
        "split_once",
    ];
    find_in_code(file, "no code reads a sentence back: use the typed value", |line| {
        readers.iter().any(|reader| {
            let called = format!(".{reader}(");
            line.match_indices(&called).any(|(at, _)| {
                let before = &line[..at];
                let start =
                    before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |end| end + 1);
                // A list of words is no sentence, and its argument is a reference.
                is_sentence(&before[start..]) && !line[at + called.len()..].starts_with('&')
            })
        })
    })
    .into_iter()
    .filter(|finding| finding.line <= tests_start)
    .collect()
}

/// Rejects code that reads the display name of an id or the text of a value back.
pub fn parsed_names(file: &SourceFile) -> Vec<Finding> {
    let is_product = file.path.starts_with("harness/") && file.path.contains("/src/");
    // The readers of assembly read names that a file has.
    if !is_product || file.path.contains("/src/text") {
        return Vec::new();
    }
    let readers = ["starts_with", "contains", "strip_prefix"];
    let is_bad = |line: &str| {
        readers.iter().any(|reader| {
            let of_id = ["'%'", "\"%\""].iter().any(|id| line.contains(&format!(".{reader}({id})")));
            of_id || line.contains("?}\"") && line.contains(&format!(").{reader}("))
        })
    };
    let message = "no code reads a name back: use `SpirvModule::source_name` or the value itself";
    let lines = file.text.lines().enumerate().filter(|(_, line)| is_bad(line));
    lines
        .map(|(index, _)| Finding { file: file.path.clone(), line: index + 1, message: message.to_owned() })
        .collect()
}

/// The start of the sentence in ARCHITECTURE.md that lists the pure crates in backticks.
const PURE_START: &str = "- **`litmus`";
const PURE_END: &str = "are pure**";

/// The crate that is only partly pure, and its pure part.
const PARTLY_PURE: (&str, &str) = ("results", "results/src/judge");

/// Rejects clocks, randomness, files and the environment in the crates that ARCHITECTURE.md calls pure.
pub fn impure_crates(files: &[SourceFile], manifests: &BTreeMap<String, Manifest>) -> Vec<Finding> {
    let map = files.iter().find(|file| file.path == ARCHITECTURE);
    let listed = map.and_then(|map| {
        let start = map.text.find(PURE_START)?;
        map.text[start..].split_once(PURE_END).map(|(list, _)| list)
    });
    let Some(listed) = listed else {
        let message = format!("no sentence from {PURE_START:?} to {PURE_END:?}");
        return vec![Finding { file: ARCHITECTURE.to_owned(), line: 0, message }];
    };
    let mut findings = Vec::new();
    for name in listed.split('`').skip(1).step_by(2) {
        let folder = match manifests.get(name).and_then(|manifest| manifest.path.strip_suffix("Cargo.toml")) {
            _ if name == PARTLY_PURE.0 => PARTLY_PURE.1.to_owned(),
            Some(folder) => format!("{folder}src"),
            None => {
                let message = format!("`{name}` is listed as pure but is not a crate");
                findings.push(Finding { file: ARCHITECTURE.to_owned(), line: 0, message });
                continue;
            }
        };
        for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
            if is_in_folder(file, &folder) || file.path == format!("{folder}.rs") {
                findings.extend(find_impurities(file));
            }
        }
    }
    findings
}

fn find_impurities(file: &SourceFile) -> Vec<Finding> {
    find_in_code(
        file,
        "no clock, randomness, file or environment here: the caller gives what is needed",
        |line| {
            words(line).any(|word| matches!(word, "Instant" | "SystemTime"))
                || ["std::fs", "std::env", "rand::"].iter().any(|path| {
                    line.match_indices(path).any(|(at, _)| {
                        !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
                    })
                })
        },
    )
}

/// Modules whose types may be serialized: the wire types of `results`, and the messages between processes
/// of a run.
const SERIALIZING_MODULES: [&str; 9] = [
    "results/src/wire",
    "results/src/bench",
    "results/src/power",
    "litmus/src/outcome",
    "litmus/src/value",
    "harness/plan/src",
    "harness/runner/src",
    "harness/campaign/src",
    "harness/isa/src/facts",
];

/// Rejects serialized types in other modules.
pub fn serialized_types(file: &SourceFile) -> Vec<Finding> {
    let is_source = file.path.contains("/src/");
    let is_allowed = |place: &&str| is_in_folder(file, place) || file.path == format!("{place}.rs");
    if !is_source || SERIALIZING_MODULES.iter().any(is_allowed) {
        return Vec::new();
    }
    find_in_code(file, "what is written to files and streams belongs in results/src/wire", |line| {
        line.contains("derive(") && words(line).any(|word| word == "Serialize")
    })
}

/// The lint at the top of a module that must handle every instruction.
const NO_CATCH_ALL: &str = "#![deny(clippy::wildcard_enum_match_arm)]";
/// The start of the lint exception with its reason.
const CATCH_ALL: &str = "#![expect(clippy::wildcard_enum_match_arm,";

/// Rejects modules that name every instruction kind without the lint that would reveal a new kind.
pub fn catch_alls(files: &[SourceFile]) -> Vec<Finding> {
    let instruction_file = files.iter().find(|file| file.path == "litmus/src/test/instruction.rs");
    let Some(kinds) =
        instruction_file.map(|tree| enum_variants(&blank_literals(&tree.text), "InstructionKind"))
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && file.path.contains("/src/")) {
        let text = blank_literals(&file.text);
        let names_all = kinds.iter().all(|kind| text.contains(&format!("InstructionKind::{kind}")));
        let without_whitespace: String = text.split_whitespace().collect();
        if names_all && ![NO_CATCH_ALL, CATCH_ALL].iter().any(|lint| without_whitespace.contains(lint)) {
            let message = format!("names every kind of instruction: `{NO_CATCH_ALL}`, or why not");
            findings.push(Finding { file: file.path.clone(), line: 0, message });
        }
    }
    findings
}

/// Returns the variants of an enum: the first words of the lines with one level of indentation.
fn enum_variants(text: &str, name: &str) -> Vec<String> {
    let body = text.split_once(&format!("enum {name} {{")).map(|(_, rest)| rest);
    let body = body.and_then(|rest| rest.split_once("\n}")).map_or("", |(body, _)| body);
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let first =
        lines.filter_map(|line| words(line).next().filter(|word| word.starts_with(char::is_uppercase)));
    first.map(str::to_owned).collect()
}

/// The file whose functions WebAssembly exports, and the attribute that names a symbol, the only unsafe code there.
const EXPORT_FILE_AND_ATTRIBUTE: (&str, &str) = ("harness/web/src/exports.rs", "#[unsafe(no_mangle)]");

/// Rejects `unsafe` outside the crate that calls drivers, except for names of exported symbols.
pub fn unsafe_outside_device(file: &SourceFile) -> Vec<Finding> {
    if is_in_folder(file, "harness/device") {
        return Vec::new();
    }
    find_in_code(file, "`unsafe` belongs in harness/device alone", |line| {
        let is_export =
            file.path == EXPORT_FILE_AND_ATTRIBUTE.0 && line.trim() == EXPORT_FILE_AND_ATTRIBUTE.1;
        !is_export && words(line).any(|word| word == "unsafe")
    })
}

/// Rejects disabled tests.
pub fn ignored_tests(file: &SourceFile) -> Vec<Finding> {
    find_in_code(file, "a test that does not run: fix it or remove it", |line| {
        line.split_whitespace().collect::<String>().contains("#[ignore")
    })
}

/// The entry of the single test program in a manifest.
const PROGRAM: &str = "[[test]]\nname = \"all\"";

/// Rejects test files that no test program includes: `tests/all.rs` must name each file.
pub fn forgotten_tests(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for program_file in files {
        let Some(folder) = program_file.path.strip_suffix("/tests/all.rs") else { continue };
        let manifest = format!("{folder}/Cargo.toml");
        let is_program = |file: &SourceFile| {
            file.path == manifest && file.text.contains("autotests = false") == file.text.contains(PROGRAM)
        };
        if !files.iter().any(is_program) {
            let message = format!("needs `autotests = false` and {PROGRAM:?}, or neither: a test runs once");
            findings.push(Finding { file: manifest, line: 0, message });
        }
        let folder = format!("{folder}/tests/");
        for file in files {
            let Some(name) = file.path.strip_prefix(&folder).and_then(|name| name.strip_suffix(".rs")) else {
                continue;
            };
            let is_named = program_file.text.lines().any(|line| line == format!("mod {name};"));
            if name != "all" && !name.contains('/') && !is_named {
                let message = format!("tests that do not run: {} has no `mod {name};`", program_file.path);
                findings.push(Finding { file: file.path.clone(), line: 0, message });
            }
        }
    }
    findings
}

/// Rejects entries of the slow-test list that name no test, so that a renamed test stays on the list.
pub fn slow_tests(files: &[SourceFile]) -> Vec<Finding> {
    let Some(list) = files.iter().find(|file| file.path == SLOW_TESTS) else { return Vec::new() };
    let sources: Vec<_> = files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    let unknown = parse_name_list(&list.text).filter(|(_, name)| {
        let mut parts = name.rsplit("::");
        let test = parts.next().unwrap_or_default();
        let module = parts.find(|part| *part != "tests");
        !sources.iter().any(|file| {
            let is_module = |module| file.path.trim_end_matches(".rs").split('/').any(|part| part == module);
            module.is_none_or(is_module)
                && blank_literals(&file.text).lines().any(|line| words(line).any(|word| word == test))
        })
    });
    let finding = |(line, name): (usize, &str)| Finding {
        file: list.path.clone(),
        line,
        message: format!("no test is named {name}"),
    };
    unknown.map(finding).collect()
}

fn is_in_folder(file: &SourceFile, folder: &str) -> bool {
    file.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

pub(super) fn words(line: &str) -> impl DoubleEndedIterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn find_in_code(file: &SourceFile, message: &str, is_bad: impl Fn(&str) -> bool) -> Vec<Finding> {
    blank_literals(&file.text)
        .lines()
        .enumerate()
        .filter(|(_, line)| is_bad(line))
        .map(|(index, _)| Finding { file: file.path.clone(), line: index + 1, message: message.to_owned() })
        .collect()
}

/// Replaces comments, string literals and character literals by spaces; line numbers are unchanged.
pub(super) fn blank_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let previous_is_word = out.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment_length(rest),
            '"' => quoted_length(rest, 1, '"'),
            'r' | 'b' if !previous_is_word => prefixed_literal_length(rest),
            '\'' => character_literal_length(rest),
            _ => 0,
        };
        if skipped == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.extend(rest[..skipped].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[skipped..];
        }
    }
    out
}

/// Returns the length of the block comment at the start; block comments nest.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of the literal whose content starts at `start` and ends with an unescaped `end`.
fn quoted_length(text: &str, start: usize, end: char) -> usize {
    let mut escaped = false;
    for (offset, c) in text[start..].char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == end {
            return start + offset + c.len_utf8();
        }
    }
    text.len()
}

/// Returns the length of a raw or byte literal at the start, or 0.
fn prefixed_literal_length(text: &str) -> usize {
    let prefix = text.len() - text.trim_start_matches(['r', 'b', 'c']).len();
    let is_raw = prefix <= 2 && text[..prefix].contains('r');
    let after = &text[prefix..];
    if is_raw {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if !after[hashes..].starts_with('"') {
            return 0;
        }
        let start = prefix + hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        return text[start..].find(&end).map_or(text.len(), |offset| start + offset + end.len());
    }
    match after.chars().next() {
        Some('"') if prefix == 1 => quoted_length(text, 2, '"'),
        Some('\'') if prefix == 1 => quoted_length(text, 2, '\''),
        _ => 0,
    }
}

/// Returns the length of a character literal at the start; 0 for a lifetime.
fn character_literal_length(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted_length(text, 1, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_without_moving_lines() {
        let text = "a /* b /* c */ \n */ d // e\n\"f \\\" g\" h r#\"i \" j\"# k 'l' '\\'' m<'n> b\"o\" bar";
        let masked: Vec<_> = blank_literals(text)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(masked, ["a", "d", "h k m<'n> bar"]);
    }

    #[test]
    fn unterminated_literals_end_with_the_text() {
        for text in ["\"a", "r#\"a", "/* a", "'\\", "b\"a"] {
            assert_eq!(blank_literals(text).trim(), "", "{text}");
        }
    }
}
