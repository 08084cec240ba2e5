//! Runs every command block of the documentation, and checks that its references are complete.
//!
//! A block marked `sh` is run by bash in a folder per document. `exit=N` is its exit code, `on=A,B` the
//! drivers it needs (those with `on=compilers` are checked by `figures`), `with=NAME` a program it needs, and
//! `elsewhere` marks one that needs more than a test has. A block with `file=NAME` is written to that file
//! first. A block marked `text output` is the output of the previous block, with `…` for any text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Ran, SHARD_VARIABLES, binary, installed, software_drivers};

/// A fenced block.
pub struct Block {
    /// Number of its first line, from 1.
    pub line: usize,
    pub words: Vec<String>,
    pub text: String,
    /// Whether another test compares it with the output.
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
    let folders = ["docs", "docs/dev", "docs/findings", "docs/patterns"]
        .map(|folder| fs::read_dir(root.join(folder)).unwrap());
    for entry in folders.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
    documents.sort();
    documents
}

/// Creates a folder with the reader's environment: the program on the path, and the repository.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join(".bin");
    fs::create_dir(&bin).unwrap();
    // A run without a given length is shortened.
    let program = format!(
        r#"#!/bin/bash
case "$1 $*" in
*--time* | *--instances*) ;;
run\ *) set -- "$@" --instances 20000 ;;
esac
exec '{}' "$@"
"#,
        binary().display()
    );
    // `cargo run` uses the binary that is already built.
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

/// Compares lines with a pattern, in which `…` stands for any text in a line, and alone for any lines.
fn is_as(lines: &[&str], wanted: &[&str]) -> bool {
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skipped| is_as(&lines[skipped..], rest)),
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, lines)| line_is_as(line, first) && is_as(lines, rest))
        }
    }
}

fn line_is_as(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.trim_end().split('…');
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
        let place = format!("{}:{}", document.display(), block.line);
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
            assert!(!commands, "{place}: commands stand in a block that is marked sh");
        }
        if language == "text" && block.is("output") {
            let Some(ran) = &printed else { continue };
            let (lines, wanted): (Vec<&str>, Vec<&str>) =
                (ran.stdout.lines().collect(), block.text.lines().collect());
            let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            assert!(is_as(&lines[..end], &wanted), "{place}: it prints\n{}", ran.stdout);
        }
        if language != "sh" {
            continue;
        }
        printed = None;
        if block.is("elsewhere") {
            let checked = Command::new("bash").args(["-n", "-c", &block.text]).status().unwrap();
            assert!(checked.success(), "{place}");
            continue;
        }
        if block.option("on").is_some_and(|on| on.starts_with("compilers")) {
            continue;
        }
        let mut needed = block.option("on").unwrap_or_default().split(',').filter(|name| !name.is_empty());
        if let Some(driver) = needed.find(|name| !drivers.get_or_insert_with(software_drivers).contains(name))
        {
            println!("1 skipped: {place} needs {driver}");
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
        let ran = Ran::of(&mut command);
        let exit = block.option("exit").map_or(0, |code| code.parse().unwrap());
        assert_eq!(ran.code, exit, "{place}:\n{}\n{}", ran.stdout, ran.stderr);
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
fn a_block_is_held_against_what_is_printed() {
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
        let wanted: Vec<&str> = wanted.lines().collect();
        assert_eq!(is_as(&lines, &wanted), holds, "{wanted:?}");
    }
}

#[test]
fn links_lead_somewhere() {
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

/// Compares a part of a document between two marks with the text generated from code.
pub fn generated(document: &str, what: &str, wanted: &str) {
    let path = root().join("docs").join(document);
    let text = fs::read_to_string(&path).unwrap();
    let (start, end) =
        (format!("<!-- {what}: made from the code -->\n"), format!("<!-- end of {what} -->\n"));
    let (before, rest) = text.split_once(&start).unwrap();
    let (found, after) = rest.split_once(&end).unwrap();
    if found != wanted && std::env::var_os("VK_LITMUS_BLESS").is_some() {
        fs::write(&path, format!("{before}{start}{wanted}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "docs/{document}: {what} is not current: VK_LITMUS_BLESS=1 writes it anew");
}

#[test]
fn the_references_have_every_word() {
    let mut words = String::from("| | words |\n|---|---|\n");
    for (what, list) in litmus::syntax::vocabulary() {
        let list: Vec<String> = list.iter().map(|word| format!("`{word}`")).collect();
        words += &format!("| {what} | {} |\n", list.join(" "));
    }
    generated("language.md", "words", &words);
    let grammar = include_str!("../../../../litmus/src/syntax/grammar.md");
    // Headings are one level deeper than in the included text.
    let grammar = grammar
        .lines()
        .skip(2)
        .map(|line| if line.starts_with('#') { format!("#{line}\n") } else { format!("{line}\n") });
    generated("language.md", "grammar", &grammar.collect::<String>());

    let table = |list: &[(&str, &str)]| {
        let rows: String = list.iter().map(|(name, holds)| format!("| `{name}` | {holds} |\n")).collect();
        format!("| name | holds |\n|---|---|\n{rows}")
    };
    generated("cat.md", "base sets", &table(model::BASE_SETS));
    generated("cat.md", "base relations", &table(model::BASE_RELATIONS));
    let reference = include_str!("../../../../harness/model/src/cat/reference.md");
    let (_, reference) = reference.split_once("# The language\n").unwrap();
    let (reference, _) = reference.split_once("# From text to values\n").unwrap();
    let reference = reference
        .lines()
        .map(|line| if line.starts_with("# ") { format!("#{line}\n") } else { format!("{line}\n") });
    generated("cat.md", "language", &reference.collect::<String>());
}

/// Items of the references are usable: each set and relation of cat occurs in a model that parses and judges,
/// and each example of a test is valid.
#[test]
fn the_examples_of_the_references_parse() {
    let mut examples = BTreeSet::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for block in blocks(&text) {
            let place = format!("{}:{}", document.display(), block.line);
            match block.words.first().map(String::as_str) {
                Some("litmus") => {
                    let parsed = litmus::parse(&block.text, &place);
                    assert!(parsed.is_ok(), "{:?}", parsed.err());
                    examples.insert("litmus");
                }
                Some("cat") => {
                    let parsed = model::Model::from_text(&place, &block.text, &|_| None);
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
