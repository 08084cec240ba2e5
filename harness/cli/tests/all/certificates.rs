//! `check --certify` and `check --verify`: files are written, verified, and rejected after a change.

use std::fs;

use crate::common::{Ran, vk_litmus};

fn run(arguments: &[&str]) -> Ran {
    Ran::run(&mut vk_litmus(arguments.iter().copied()))
}

#[test]
fn certificates_are_written_verified_and_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let proofs = folder.path().join("proofs").display().to_string();
    let made = run(&["check", "--certify", &proofs, "mp/MP+rel-acq", "mp/MP+plain", "hsa/*"]);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    let files: Vec<_> = fs::read_dir(&proofs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(
        made.stdout.starts_with(&format!("{0} of {0} tests certified: ", files.len())),
        "{}",
        made.stdout
    );
    let verified = run(&["check", "--verify", &proofs]);
    assert_eq!(
        (verified.code, verified.stdout),
        (0, format!("{0} of {0} certificates verified\n", files.len()))
    );
    let stopped = run(&["check", "--verify", &proofs, "--timeout", "1us"]);
    assert_eq!(stopped.code, 3, "{}{}", stopped.stdout, stopped.stderr);
    assert!(stopped.stdout.contains("mp_MP+plain.json: not verified: the time limit"), "{}", stopped.stdout);
    assert!(stopped.stdout.ends_with(&format!("0 of {} certificates verified\n", files.len())));

    let one = files.iter().find(|file| file.ends_with("mp_MP+rel-acq.json")).unwrap();
    let text = fs::read_to_string(one).unwrap();
    // The model forbids the outcome (1, 0).
    for (from, to, reason) in [
        (r#""allowed":[{"values":[0,0]"#, r#""allowed":[{"values":[1,0]"#, "allowed"),
        ("acyclic part?", "acyclic part", "structure 0"),
        (r#""cut":false"#, r#""cut":true"#, "loop bound"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(one, text.replace(from, to)).unwrap();
        let rejected = run(&["check", "--verify", &one.display().to_string()]);
        assert_eq!(rejected.code, 1, "{from}: {}{}", rejected.stdout, rejected.stderr);
        assert!(rejected.stdout.contains(reason), "{from}: {}", rejected.stdout);
    }
    fs::write(one, text.replace(r#""schema""#, r#""scheme""#)).unwrap();
    let unreadable = run(&["check", "--verify", &proofs]);
    assert_eq!(unreadable.code, 2, "{}{}", unreadable.stdout, unreadable.stderr);
    assert!(unreadable.stderr.contains("mp_MP+rel-acq.json: not a certificate: "), "{}", unreadable.stderr);
    let others = files.len() - 1;
    assert_eq!(unreadable.stdout, format!("{others} of {} certificates verified\n", files.len()));
}

#[test]
fn answers_without_a_proof_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let proofs = folder.path().join("proofs").display().to_string();
    let refused = run(&["check", "--certify", &proofs, "--model", "wgsl", "sb/SB+fence-fence"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stdout.contains("sb/SB+fence-fence: not certified: not available: "),
        "{}",
        refused.stdout
    );
    assert!(refused.stdout.contains("0 of 1 tests certified"), "{}", refused.stdout);
    assert_eq!(fs::read_dir(&proofs).unwrap().count(), 0);
    let none = run(&["check", "--verify", &proofs]);
    assert_eq!(none.code, 2, "{}", none.stdout);
    assert!(none.stderr.contains("check --certify"), "{}", none.stderr);
}

/// A violation with a certificate is reported as one.
#[test]
fn violations_are_certified() {
    let run = run(&[
        "run",
        "mp/MP+rel-acq",
        "--fault",
        "release-does-not-drain-stores",
        "--instances",
        "2000",
        "--seed",
        "1",
        "--certified",
        "--out",
        &tempfile::tempdir().unwrap().path().join("out").display().to_string(),
    ]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("violates"), "{}", run.stdout);
}
