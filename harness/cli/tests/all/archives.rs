//! Archives of Fossilize as input: their modules by hash, with the settings of pipelines.

use std::fs;

use crate::common::{Ran, vk_litmus};

const ARCHIVE: &[u8] = include_bytes!("shaders/pipelines.foz");

fn write_archive(bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.foz").display().to_string();
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// Returns the verdicts of `race` with the names in the archive and the entry points.
fn race(archive: &str, arguments: &[&str]) -> (i32, Vec<[String; 3]>) {
    let ran = Ran::run(&mut vk_litmus(["race", "--format", "json"].iter().chain(arguments).copied()));
    let word = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap().replace(archive, "");
    let lines = ran.json_lines();
    let row = |line: &serde_json::Value| ["file", "entry", "verdict"].map(|key| word(line, key));
    (ran.code, lines.iter().map(row).collect())
}

/// Only the pipeline with a stride of 0 writes one element twice; its constants come from the archive.
#[test]
fn race_uses_the_constants_and_entry_points_of_pipelines() {
    let (_folder, path) = write_archive(ARCHIVE);
    let (code, rows) = race(&path, &[&path]);
    let expected = [
        ["/00000000000000c1.00000000000000a1", "blur", "racy"],
        ["/00000000000000c1.00000000000000a2", "blur", "clean"],
        ["/00000000000000c2", "main", "clean"],
        ["/00000000000000c3", "main", "clean"],
        ["/00000000000000c4", "main", "clean"],
    ];
    assert_eq!((code, &rows[..]), (1, &expected.map(|row| row.map(str::to_owned))[..]));
    for (hash, count) in
        [("c1", 2), ("a2", 1), ("00000000000000b1", 1), ("00000000000000c1.00000000000000a1", 1)]
    {
        assert_eq!(race(&path, &[&format!("{path}/{hash}")]).1.len(), count, "{hash}");
    }
}

#[test]
fn commands_answer_for_every_module_and_continue_after_damage() {
    let (_whole, path) = write_archive(ARCHIVE);
    let cut = &ARCHIVE[..ARCHIVE.len() - 3];
    let (_cut, cut) = write_archive(cut);
    let (_cache, cache) =
        write_archive(&[&ARCHIVE[..16], b"4c4fe1e9".repeat(5).as_slice(), &[0; 16]].concat());
    let mut flipped = ARCHIVE.to_vec();
    let code = ARCHIVE.len() - 400;
    flipped[code] ^= 1;
    let (_flipped, flipped) = write_archive(&flipped);
    let member = format!("{path}/00000000000000c2");
    let unknown = format!("{path}/77");
    let cases: [(&[&str], i32, &str); 12] = [
        (&["lint", &path], 0, "c1.00000000000000a1: no finding"),
        (&["check", &path], 1, "5 shaders 4 no finding 1 race"),
        (&["check", &member], 0, ""),
        (&["refine", "--through", "cp {in} {out}", &path], 0, "refines"),
        (&["refine", &member, &member], 0, ""),
        (&["refine", &path, &member], 2, "5 modules; expected one: pass"),
        (&["race", &cut], 2, "8 entries before it are complete"),
        (&["lint", &cut], 2, "an entry is cut off"),
        (&["lint", &flipped], 2, "the checksum of the contents"),
        (&["lint", &cache], 2, "no SPIR-V modules among 1 entries"),
        (&["race", &unknown], 2, "no module or pipeline `77`"),
        (&["lint", "missing.foz"], 2, "No such file"),
    ];
    for (arguments, code, expected) in cases {
        let ran = Ran::run(&mut vk_litmus(arguments.iter().copied()));
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        assert!(ran.words().contains(expected), "{expected}: {ran:?}");
    }
}
