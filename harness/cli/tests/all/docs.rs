//! Runs every command block of the documentation, and checks that its references are complete.
//!
//! Bash runs each block marked `sh`, in one folder per document. `exit=N` is its exit code, `on=A,B` are the
//! drivers it needs (the module `figures` checks `on=compilers`), `with=NAME` is a program it needs, and
//! `elsewhere` marks a block that cannot run in a test. A block with `file=NAME` is written to that file
//! first. A block marked `text output` is the output of the previous block, with `…` for any text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Ran, SHARD_VARIABLES, binary, installed, software_drivers, vk_litmus};

/// A fenced block.
pub struct Block {
    /// Number of its first line, from 1.
    pub line: usize,
    pub words: Vec<String>,
    pub text: String,
    /// True if another test compares the block with the output.
    checked: bool,
}

impl Block {
    pub fn option(&self, name: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }
}

pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut above = "";
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let words = info.split_whitespace().map(str::to_owned).collect();
                let checked = above.starts_with("<!-- checked:");
                open = Some(Block { line: index + 1, words, text: String::new(), checked });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) => above = line,
        }
    }
    assert!(open.is_none(), "a block without an end");
    blocks
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut documents =
        vec![root.join("README.md"), root.join("ci/README.md"), root.join("results/README.md")];
    documents.extend(pages(&root.join("docs")));
    documents.sort();
    documents
}

/// Returns every Markdown file below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// Creates a folder, with the program in the path and a copy of the repository.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join(".bin");
    fs::create_dir(&bin).unwrap();
    // Runs without a time limit are shortened.
    let program = format!(
        r#"#!/bin/bash
case "$1 $*" in
*--time* | *--instances* | *--resume*) ;;
run\ *) set -- "$@" --instances 4000 ;;
esac
exec '{}' "$@"
"#,
        binary().display()
    );
    // `cargo run` starts the binary that is already built.
    let cargo = r#"#!/bin/bash
[ "$1 $2 $3" = 'run --release --' ] || exit 2
shift 3
exec vk-litmus "$@" --device sim
"#;
    for (name, script) in [("vk-litmus", program.as_str()), ("cargo", cargo)] {
        fs::write(bin.join(name), script).unwrap();
        Command::new("chmod").arg("+x").arg(bin.join(name)).status().unwrap();
    }
    folder
}

/// Compares lines with a pattern. `…` matches any text in a line; a line `…` matches any lines.
pub fn matches_pattern(lines: &[&str], pattern: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skipped| matches_pattern(&lines[skipped..], rest)),
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| line_matches_pattern(line, first) && matches_pattern(lines, rest)),
    }
}

fn line_matches_pattern(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.trim_end().strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    for (index, part) in parts.iter().enumerate() {
        if index + 1 == parts.len() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

fn run_document(document: &Path) {
    let text = fs::read_to_string(document).unwrap();
    let folder = folder();
    let path =
        format!("{}:{}", folder.path().join(".bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut printed: Option<Ran> = None;
    let mut drivers: Option<Vec<&str>> = None;
    for block in blocks(&text) {
        let position = format!("{}:{}", document.display(), block.line);
        if let Some(name) = block.option("file") {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
        let language = block.words.first().map(String::as_str).unwrap_or_default();
        if language != "sh" {
            let is_command = |line: &str| {
                let line = line.trim_start_matches("$ ");
                line.starts_with("vk-litmus ") || line.starts_with("cargo run")
            };
            let commands = !block.checked && block.text.lines().any(is_command);
            assert!(!commands, "{position}: commands stand in a block that is marked sh");
        }
        if language == "text" && block.is("output") {
            let Some(ran) = &printed else { continue };
            let (lines, wanted): (Vec<&str>, Vec<&str>) =
                (ran.stdout.lines().collect(), block.text.lines().collect());
            let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            assert!(matches_pattern(&lines[..end], &wanted), "{position}: it prints\n{}", ran.stdout);
        }
        if language != "sh" {
            continue;
        }
        printed = None;
        if block.is("elsewhere") {
            let checked = Command::new("bash").args(["-n", "-c", &block.text]).status().unwrap();
            assert!(checked.success(), "{position}");
            continue;
        }
        if block.option("on").is_some_and(|on| on.starts_with("compilers")) {
            continue;
        }
        let mut needed = block.option("on").unwrap_or_default().split(',').filter(|name| !name.is_empty());
        if let Some(driver) = needed.find(|name| !drivers.get_or_insert_with(software_drivers).contains(name))
        {
            println!("1 skipped: {position} needs {driver}");
            continue;
        }
        if block.option("with").is_some_and(|program| !installed(program)) {
            continue;
        }
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", &block.text]).current_dir(folder.path()).env("PATH", &path);
        command.env_remove("RUST_LOG").env_remove("VK_LITMUS_DEVICE").env("NO_COLOR", "1");
        for variable in SHARD_VARIABLES {
            command.env_remove(variable);
        }
        let ran = Ran::run(&mut command);
        let exit = block.option("exit").map_or(0, |code| code.parse().unwrap());
        assert_eq!(ran.code, exit, "{position}:\n{}\n{}", ran.stdout, ran.stderr);
        printed = Some(ran);
    }
}

#[test]
fn every_command_block_is_run() {
    for document in documents() {
        run_document(&document);
    }
}

/// A negative test must fail for the intended reason.
#[test]
fn a_block_is_compared_with_the_output() {
    let lines = ["one", "two 2 three", "", "four"];
    for (wanted, holds) in [
        ("one\ntwo 2 three\n\nfour", true),
        ("one\ntwo … three\n…\nfour", true),
        ("…\nfour", true),
        ("one\n…", true),
        ("one", false),
        ("…\nfive", false),
        ("one\ntwo … four\n…", false),
        ("one\n…two\n…", false),
    ] {
        let pattern: Vec<&str> = wanted.lines().collect();
        assert_eq!(matches_pattern(&lines, &pattern), holds, "{pattern:?}");
    }
}

/// The generated pages equal the output of the program: `cargo xtask docs` updates them.
#[test]
fn the_reference_is_current() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Ran::run(vk_litmus(["reference", "--out"]).arg(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let reference = root().join("docs/reference");
    let mut expected_pages = BTreeSet::new();
    for path in pages(folder.path()) {
        let name = path.strip_prefix(folder.path()).unwrap().to_owned();
        let found = fs::read_to_string(reference.join(&name)).unwrap_or_default();
        assert_eq!(found, fs::read_to_string(&path).unwrap(), "{}: run `cargo xtask docs`", name.display());
        expected_pages.insert(name);
    }
    for path in pages(&reference) {
        let name = path.strip_prefix(&reference).unwrap().to_owned();
        let is_generated = fs::read_to_string(&path).unwrap().starts_with("<!-- generated by");
        assert_eq!(is_generated, expected_pages.contains(&name), "{}", name.display());
    }
}

/// The book lists every page exactly once.
#[test]
fn the_book_lists_every_page() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: Vec<&str> =
        summary.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
    let unique: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let found: BTreeSet<String> = pages(&docs)
        .iter()
        .map(|path| path.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned())
        .filter(|path| !["SUMMARY.md", "decisions.md"].contains(&path.as_str()))
        .collect();
    let listed: BTreeSet<String> = unique.into_iter().map(str::to_owned).collect();
    assert_eq!(listed, found);
}

/// Pages that other tests generate and compare.
const GENERATED: [&str; 5] = [
    "explanation/disagreements.md",
    "explanation/texts.md",
    "dev/compiler-figures.md",
    "reference/cat.md",
    "reference/grammar.md",
];

/// Limits the words of all hand-written pages, and of each page of a kind.
#[test]
fn pages_are_short() {
    let docs = root().join("docs");
    let words = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        // Tests generate these tables from data.
        let mut parts = text.split("<!-- table:");
        let first = parts.next().unwrap();
        let behind = parts.map(|part| part.split_once("<!-- end of table -->").unwrap().1);
        std::iter::once(first).chain(behind).flat_map(str::split_whitespace).count()
    };
    let count_words = |folders: &[&str]| -> Vec<(PathBuf, usize)> {
        let pages = folders.iter().flat_map(|folder| pages(&docs.join(folder)));
        pages.map(|path| (path.clone(), words(&path))).collect()
    };
    let is_generated = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.contains("<!-- generated") || GENERATED.iter().any(|page| path.ends_with(page))
    };
    let total = |pages: &[(PathBuf, usize)]| -> usize {
        pages.iter().filter(|(path, _)| !is_generated(path)).map(|(_, words)| words).sum()
    };
    let users = count_words(&["tutorials", "howto", "reference", "explanation"]);
    assert!(total(&users) <= 22_000, "{} words for users", total(&users));
    let contributors = count_words(&["dev"]);
    assert!(total(&contributors) <= 12_000, "{} words for contributors", total(&contributors));
    for (path, words) in count_words(&["howto"]) {
        assert!(words <= 600, "{}: {words} words, at most 600", path.display());
    }
    for (path, words) in count_words(&["tutorials"]) {
        assert!(words <= 1_500, "{}: {words} words, at most 1,500", path.display());
    }
}

#[test]
fn links_have_a_target() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for (index, line) in text.lines().enumerate() {
            for part in line.split("](").skip(1) {
                let target = part.split(')').next().unwrap_or_default();
                let path = target.split('#').next().unwrap_or_default();
                if path.is_empty() || target.contains("://") {
                    continue;
                }
                let there = document.parent().unwrap().join(path);
                assert!(there.exists(), "{}:{}: no {target}", document.display(), index + 1);
            }
        }
    }
}

/// Compares the part of a document between two marks with generated text.
pub fn compare_generated(document: &str, what: &str, expected: &str) {
    let path = root().join("docs").join(document);
    let text = fs::read_to_string(&path).unwrap();
    let (start, end) =
        (format!("<!-- {what}: made from the code -->\n"), format!("<!-- end of {what} -->\n"));
    let (before, rest) = text.split_once(&start).unwrap();
    let (found, after) = rest.split_once(&end).unwrap();
    if found != expected && std::env::var_os("VK_LITMUS_BLESS").is_some() {
        fs::write(&path, format!("{before}{start}{expected}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, expected,
        "docs/{document}: {what} is not current: run the test with VK_LITMUS_BLESS=1"
    );
}

#[test]
fn the_references_list_every_keyword() {
    let mut words = String::from("| | words |\n|---|---|\n");
    for (what, list) in litmus::syntax::keywords_by_category() {
        let list: Vec<String> = list.iter().map(|word| format!("`{word}`")).collect();
        words += &format!("| {what} | {} |\n", list.join(" "));
    }
    compare_generated("reference/grammar.md", "words", &words);
    let grammar = include_str!("../../../../litmus/src/syntax/grammar.md");
    // Headings are one level lower than in the included text.
    let grammar = grammar
        .lines()
        .skip(2)
        .map(|line| if line.starts_with('#') { format!("#{line}\n") } else { format!("{line}\n") });
    compare_generated("reference/grammar.md", "grammar", &grammar.collect::<String>());

    let table = |list: &[(&str, &str)]| {
        let rows: String = list.iter().map(|(name, holds)| format!("| `{name}` | {holds} |\n")).collect();
        format!("| name | holds |\n|---|---|\n{rows}")
    };
    compare_generated("reference/cat.md", "base sets", &table(model::BASE_SETS));
    compare_generated("reference/cat.md", "base relations", &table(model::BASE_RELATIONS));
    let reference = include_str!("../../../../harness/model/src/cat/reference.md");
    let (_, reference) = reference.split_once("# The language\n").unwrap();
    let (reference, _) = reference.split_once("# From text to values\n").unwrap();
    let reference = reference
        .lines()
        .map(|line| if line.starts_with("# ") { format!("#{line}\n") } else { format!("{line}\n") });
    compare_generated("reference/cat.md", "language", &reference.collect::<String>());
}

/// Each set and relation of the cat reference occurs in a model that parses and judges, and each example of a
/// litmus test is valid.
#[test]
fn the_examples_of_the_references_parse() {
    let mut examples = BTreeSet::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for block in blocks(&text) {
            let position = format!("{}:{}", document.display(), block.line);
            match block.words.first().map(String::as_str) {
                Some("litmus") => {
                    let parsed = litmus::parse(&block.text, &position);
                    assert!(parsed.is_ok(), "{:?}", parsed.err());
                    examples.insert("litmus");
                }
                Some("cat") => {
                    let parsed = model::Model::from_text(&position, &block.text, &|_| None);
                    assert!(parsed.is_ok(), "{:?}", parsed.err());
                    examples.insert("cat");
                }
                _ => {}
            }
        }
    }
    assert_eq!(examples.len(), 2);
    let sets: String = model::BASE_SETS.iter().map(|(name, _)| format!("let x = [{name}]\n")).collect();
    let relations: String =
        model::BASE_RELATIONS.iter().map(|(name, _)| format!("let x = {name} | 0\n")).collect();
    let text = format!("\"names\"\n{sets}{relations}empty 0 as nothing\n");
    let parsed = model::Model::from_text("names.cat", &text, &|_| None);
    assert!(parsed.is_ok(), "{:?}", parsed.err());
}
