//! Inputs that no committed file can be: too large, missing links, pipes; and outputs that break.

use std::io::Read;
use std::process::Stdio;

use crate::common::{Ran, assert_valid, schemas, vk_litmus};
use serde_json::Value;

const SB: &str = include_str!("cases/files/mixed/SB.litmus");

/// Checks a folder with one good test and `bad` made by `make`; gives the rejected line of `bad`.
fn rejected(make: impl FnOnce(&std::path::Path)) -> Value {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.litmus"), SB).unwrap();
    let bad = folder.path().join("bad.litmus");
    make(&bad);
    let ran = Ran::of(&mut vk_litmus(["check", "--format", "json", folder.path().to_str().unwrap()]));
    assert_eq!(ran.code, 2, "{ran:?}");
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 2, "the walk goes on: {ran:?}");
    assert_eq!(lines[0]["file"], bad.to_str().unwrap(), "in the order of files");
    assert_eq!(lines[1]["id"], "good");
    for schema in schemas("rejected.schema.json", "check.schema.json") {
        assert_valid(&schema, &lines[0]);
    }
    for schema in schemas("check.schema.json", "check.schema.json") {
        assert_valid(&schema, &lines[1]);
    }
    assert!(ran.stderr.contains("bad.litmus"), "{}", ran.stderr);
    lines[0].clone()
}

#[test]
fn a_test_larger_than_a_mebibyte() {
    let line = rejected(|path| std::fs::write(path, vec![b' '; (1 << 20) + 1]).unwrap());
    assert_eq!(line["error"], "larger than 1024 KiB");
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing() {
    let line = rejected(|path| std::os::unix::fs::symlink("nowhere", path).unwrap());
    assert!(line["error"].as_str().unwrap().contains("No such file"), "{line}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let line = rejected(|path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    });
    assert_eq!(line["error"], "not a regular file");
}

#[test]
fn an_empty_file() {
    let line = rejected(|path| std::fs::write(path, "").unwrap());
    assert_eq!((&line["line"], &line["column"]), (&Value::from(1), &Value::from(1)));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = vk_litmus(["tests"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = vk_litmus(["tests"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn a_file_given_twice_is_checked_once_and_ids_stay_unique() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("SB.litmus"), SB).unwrap();
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b) = (path("a"), path("b/SB.litmus"));
    let ran = Ran::of(&mut vk_litmus(["check", "--format", "json", &a, &b, &b]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let ids: Vec<Value> = ran.json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Ran::of(&mut vk_litmus(["completions", shell]));
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("suite"), "{shell}");
    }
    let ran = Ran::of(&mut vk_litmus(["man"]));
    assert!(ran.stdout.contains(".TH vk-litmus"), "{}", ran.stdout);
    for command in ["run", "check", "explain", "report", "devices"] {
        let ran = Ran::of(&mut vk_litmus(["man", command]));
        assert!(ran.stdout.contains(&format!(".TH vk-litmus-{command}")), "{}", ran.stdout);
    }
    let unknown = Ran::of(&mut vk_litmus(["man", "worker"]));
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn a_printed_test_is_the_same_test() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["sb/SB+rlx-rlx", "mp/MP+rel-acq", "barrier/MP+cbar"] {
        let printed = Ran::of(&mut vk_litmus(["convert", id, "--to", "litmus"]));
        assert_eq!(printed.code, 0, "{printed:?}");
        let path = folder.path().join("printed.litmus");
        std::fs::write(&path, &printed.stdout).unwrap();
        let again = Ran::of(&mut vk_litmus(["convert", path.to_str().unwrap(), "--to", "litmus"]));
        assert_eq!(again.stdout, printed.stdout);
    }
}

#[test]
fn a_kernel_goes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.spv");
    let ran = Ran::of(&mut vk_litmus(["compile", "sb/SB+rlx-rlx", "--out", path.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes.get(..4), Some(0x0723_0203_u32.to_le_bytes().as_slice()), "SPIR-V's magic number");
    let ran = Ran::of(&mut vk_litmus(["compile", "sb/SB+rlx-rlx", "--emit", "spvasm"]));
    assert!(ran.stdout.contains("OpMemoryModel Logical Vulkan"), "{}", ran.stdout);
}
