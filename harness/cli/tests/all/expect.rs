//! Mistakes in expectation files, and the files of the repository.

use std::fs;
use std::path::Path;

use crate::common::{Ran, vk_litmus};

const SOUND: &str = "coherence/CoRR+rlx";

#[test]
fn mistakes_are_reported_with_positions() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    write("all-fails.txt", b"# fine\nsb/SB,Fail,0.5\n  sb/LB,Wrong\nmp/MP,Pass\n,Fail\nsb/SB,Crash\n");
    write("sim-flakes.txt", b"mp/MP,Fail\nmp/(\n\xc3\xa4\xc3\xb6 [z-a]\n");
    write("sim-skips.txt", b"mp\n\xc3\xa4b\xff\n");
    write("sim-fail.txt", b"mp\n");
    write("README.md", b"anything");
    let mut command = vk_litmus(["run", SOUND, "--device", "sim", "--instances", "100", "--expect", "."]);
    let ran = Ran::run(command.current_dir(folder.path()));
    assert_eq!(ran.code, 2, "{ran:?}");
    insta::assert_snapshot!(ran.stderr);
}

/// The expectation files of the repository are well-formed, and every line has a reason.
#[test]
fn shipped_expectation_files_are_well_formed() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/expectations");
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", SOUND, "--device", "sim", "--instances", "100", "--seed", "1"]);
    let ran = Ran::run(command.arg("--expect").arg(&shipped).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    for entry in fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let parsed = results::expectation::Expectations::parse(&name, &name, &fs::read(&path).unwrap());
        for entry in parsed.unwrap().iter().flat_map(|file| &file.entries) {
            assert!(!entry.reason.is_empty(), "{name}:{}: without a reason", entry.line);
        }
    }
}
