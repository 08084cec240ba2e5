//! Rules on Rust code: who may use `ash`, print, or be unsafe. Comments and string literals do not count.

use super::{Finding, SourceFile};

/// Refuses the Vulkan bindings outside the crate that wraps them.
pub fn ash_outside_device(file: &SourceFile) -> Vec<Finding> {
    if in_folder(file, "harness/device") {
        return Vec::new();
    }
    code_lines(file, "`ash` belongs in harness/device alone", |line| {
        line.contains("ash::") && words(line).any(|word| word == "ash")
    })
}

/// Refuses printing outside the command line, the chores and tests: libraries answer, they do not talk.
pub fn printing_in_libraries(file: &SourceFile) -> Vec<Finding> {
    let may_print = in_folder(file, "harness/cli")
        || in_folder(file, "ci/xtask")
        || file.path.ends_with("build.rs")
        || ["/tests/", "/benches/", "/examples/"].iter().any(|part| file.path.contains(part));
    if may_print {
        return Vec::new();
    }
    // What follows the first `#[cfg(test)]` of a file is its tests.
    let tests_start =
        masked(&file.text).lines().position(|line| line.contains("#[cfg(test)]")).unwrap_or(usize::MAX);
    code_lines(file, "printing belongs in harness/cli", |line| {
        ["print!", "println!", "eprint!", "eprintln!", "dbg!"].iter().any(|call| line.contains(call))
    })
    .into_iter()
    .filter(|finding| finding.line <= tests_start)
    .collect()
}

/// The crates that are pure in all they do; of `results` that is the judging alone.
const WITHOUT_CLOCK: [&str; 6] = [
    "litmus/src",
    "shaders/src",
    "harness/model/src",
    "harness/isa/src",
    "harness/codegen/src",
    "results/src/judge",
];

/// Refuses clocks in the crates that must answer the same whenever they are asked.
pub fn clocks_in_pure_crates(file: &SourceFile) -> Vec<Finding> {
    if !WITHOUT_CLOCK.iter().any(|folder| in_folder(file, folder) || file.path == format!("{folder}.rs")) {
        return Vec::new();
    }
    code_lines(file, "no clock here: the caller says when to stop", |line| {
        words(line).any(|word| matches!(word, "Instant" | "SystemTime"))
    })
}

/// Refuses `unsafe` outside the crate that talks to drivers.
pub fn unsafe_outside_device(file: &SourceFile) -> Vec<Finding> {
    if in_folder(file, "harness/device") {
        return Vec::new();
    }
    code_lines(file, "`unsafe` belongs in harness/device alone", |line| {
        words(line).any(|word| word == "unsafe")
    })
}

/// Refuses tests that are switched off.
pub fn ignored_tests(file: &SourceFile) -> Vec<Finding> {
    code_lines(file, "a test that does not run: mend it or remove it", |line| {
        line.split_whitespace().collect::<String>().contains("#[ignore")
    })
}

/// How a manifest names the program of all tests.
const PROGRAM: &str = "[[test]]\nname = \"all\"";

/// Refuses files of tests that no program of tests has: where a crate's tests are one program, `tests/all.rs` names each.
pub fn forgotten_tests(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for all in files {
        let Some(folder) = all.path.strip_suffix("/tests/all.rs") else { continue };
        let manifest = format!("{folder}/Cargo.toml");
        let is_program = |file: &SourceFile| {
            file.path == manifest && file.text.contains("autotests = false") == file.text.contains(PROGRAM)
        };
        if !files.iter().any(is_program) {
            let message = format!("says `autotests = false` and {PROGRAM:?}, or neither: a test runs once");
            findings.push(Finding { file: manifest, line: 0, message });
        }
        let folder = format!("{folder}/tests/");
        for file in files {
            let Some(name) = file.path.strip_prefix(&folder).and_then(|name| name.strip_suffix(".rs")) else {
                continue;
            };
            let named = all.text.lines().any(|line| line == format!("mod {name};"));
            if name != "all" && !name.contains('/') && !named {
                let message = format!("tests that do not run: {} has no `mod {name};`", all.path);
                findings.push(Finding { file: file.path.clone(), line: 0, message });
            }
        }
    }
    findings
}

fn in_folder(file: &SourceFile, folder: &str) -> bool {
    file.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn code_lines(file: &SourceFile, message: &str, is_bad: impl Fn(&str) -> bool) -> Vec<Finding> {
    masked(&file.text)
        .lines()
        .enumerate()
        .filter(|(_, line)| is_bad(line))
        .map(|(index, _)| Finding { file: file.path.clone(), line: index + 1, message: message.to_owned() })
        .collect()
}

/// The text with comments, string literals and character literals blanked out; lines stay where they are.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let previous_is_word = out.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest, 1, '"'),
            'r' | 'b' if !previous_is_word => literal_with_prefix(rest),
            '\'' => character(rest),
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

/// Length of the block comment at the start; they nest.
fn block_comment(text: &str) -> usize {
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

/// Length of the literal whose content starts at `start` and ends with `end`, escapes heeded.
fn quoted(text: &str, start: usize, end: char) -> usize {
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

/// Length of a raw or byte literal at the start, or 0 where there is none.
fn literal_with_prefix(text: &str) -> usize {
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
        Some('"') if prefix == 1 => quoted(text, 2, '"'),
        Some('\'') if prefix == 1 => quoted(text, 2, '\''),
        _ => 0,
    }
}

/// Length of a character literal at the start; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted(text, 1, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let text = "a /* b /* c */ \n */ d // e\n\"f \\\" g\" h r#\"i \" j\"# k 'l' '\\'' m<'n> b\"o\" bar";
        let masked: Vec<_> =
            masked(text).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(masked, ["a", "d", "h k m<'n> bar"]);
    }

    #[test]
    fn unterminated_literals_end_with_the_text() {
        for text in ["\"a", "r#\"a", "/* a", "'\\", "b\"a"] {
            assert_eq!(masked(text).trim(), "", "{text}");
        }
    }

    #[test]
    fn ash_is_for_the_device_crate() {
        let text = "use ash::vk;\n// ash::vk\nuse crash::x;\n";
        assert_eq!(lines(&ash_outside_device(&file("harness/runner/src/a.rs", text))), [1]);
        assert!(ash_outside_device(&file("harness/device/src/a.rs", text)).is_empty());
    }

    #[test]
    fn only_the_command_line_chores_and_tests_print() {
        let text = "fn f() { println!(); }\n#[cfg(test)]\nmod tests { fn g() { println!(); } }\n";
        assert_eq!(lines(&printing_in_libraries(&file("litmus/src/a.rs", text))), [1]);
        for path in ["harness/cli/src/a.rs", "ci/xtask/src/a.rs", "litmus/tests/a.rs", "results/build.rs"] {
            assert!(printing_in_libraries(&file(path, text)).is_empty(), "{path}");
        }
    }

    #[test]
    fn unsafe_is_for_the_device_crate() {
        let text = "#![forbid(unsafe_code)]\nunsafe { f() }\n\"unsafe\"\n";
        assert_eq!(lines(&unsafe_outside_device(&file("litmus/src/a.rs", text))), [2]);
        assert!(unsafe_outside_device(&file("harness/device/src/a.rs", text)).is_empty());
        assert_eq!(lines(&unsafe_outside_device(&file("harness/devices/src/a.rs", text))), [2]);
    }

    #[test]
    fn pure_crates_have_no_clock() {
        let text =
            "use std::time::Duration;\nuse std::time::Instant;\n// Instant\nlet t = SystemTime::now();\n";
        assert_eq!(lines(&clocks_in_pure_crates(&file("harness/model/src/a.rs", text))), [2, 4]);
        assert_eq!(lines(&clocks_in_pure_crates(&file("results/src/judge.rs", text))), [2, 4]);
        for path in ["harness/model/benches/a.rs", "harness/cli/src/a.rs", "results/src/journal.rs"] {
            assert!(clocks_in_pure_crates(&file(path, text)).is_empty(), "{path}");
        }
    }

    #[test]
    fn forgotten_tests_are_found() {
        let all = file("litmus/tests/all.rs", "mod corpus;\n");
        let tests = ["corpus", "parse", "corpus/helper"];
        let mut files: Vec<_> =
            tests.map(|name| file(&format!("litmus/tests/{name}.rs"), "")).into_iter().collect();
        files.push(file("harness/sim/tests/parse.rs", ""));
        assert!(forgotten_tests(&files).is_empty(), "each is a program of its own");
        files.push(all);
        let manifest = |text: &str| file("litmus/Cargo.toml", text);
        files.push(manifest("autotests = false\n"));
        assert_eq!(forgotten_tests(&files).len(), 2, "no program has them");
        files.pop();
        files.push(manifest("autotests = false\n[[test]]\nname = \"all\"\n"));
        let found = forgotten_tests(&files);
        assert_eq!(found.iter().map(|f| f.file.as_str()).collect::<Vec<_>>(), ["litmus/tests/parse.rs"]);
    }

    #[test]
    fn ignored_tests_are_found() {
        let text = "#[test]\n#[ ignore = \"slow\" ]\nfn f() {}\n// #[ignore]\n";
        assert_eq!(lines(&ignored_tests(&file("litmus/src/a.rs", text))), [2]);
    }
}
