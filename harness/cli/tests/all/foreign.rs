//! Tests of C11 and PTX: converted programs have the expected verdicts.

use crate::common::{Ran, vk_litmus};

#[test]
fn converted_tests_have_their_verdicts() {
    for (syntax, texts) in
        [("c11", include_str!("foreign/c11.txt")), ("ptx", include_str!("foreign/ptx.txt"))]
    {
        let folder = tempfile::tempdir().unwrap();
        for (number, text) in texts.split("----\n").enumerate() {
            std::fs::write(folder.path().join(format!("{number:02}.litmus")), text).unwrap();
        }
        let (from, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
        let out = out.to_str().unwrap();
        let ran =
            Ran::run(&mut vk_litmus(["convert", from, "--from", syntax, "--to", "litmus", "--out", out]));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{syntax}");
        // Every claim that a test makes about one of the models.
        for model in ["vulkan", "ptx", "opencl"] {
            let is_claimed = |text: &str| text.contains(&format!("expect: {model} "));
            let claimed = (0..).zip(texts.split("----\n")).filter(|(_, text)| is_claimed(text));
            let files: Vec<String> =
                claimed.map(|(number, _): (u32, _)| format!("{out}/{number:02}.litmus")).collect();
            if !files.is_empty() {
                let ran = Ran::run(vk_litmus(["check", "--model", model]).args(&files));
                assert_eq!(ran.code, 0, "{syntax} {model}: {}{}", ran.stdout, ran.stderr);
            }
        }
    }
}
