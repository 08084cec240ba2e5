//! Tests of C11 and PTX: converted programs have the expected verdicts, and the rest is refused at its place.

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

#[test]
fn unsupported_words_are_refused_at_their_place() {
    let c11 = |statement: &str| {
        format!("C t\n{{ [x] = 0; }}\nP0 (atomic_int* x) {{\n  {statement}\n}}\nexists (x=1)\n")
    };
    let ptx = |cell: &str| format!("PTX t\n{{ x=0; }}\n P0@cta 0,gpu 0 ;\n {cell} ;\nexists (x == 1)\n");
    let cases = [
        ("c11", c11("while (1) { }"), "4:3", "`while`"),
        (
            "c11",
            c11("int r0 = atomic_load_explicit(x, memory_order_consume);"),
            "4:36",
            "`memory_order_consume`",
        ),
        (
            "c11",
            c11("int r0 = atomic_load_explicit(x, memory_order_release);"),
            "4:36",
            "`memory_order_release`",
        ),
        ("c11", c11("atomic_compare_exchange_strong(x, x, 1);"), "4:3", "`atomic_compare_exchange_strong`"),
        ("c11", c11("long r0 = *x;"), "4:3", "`long`"),
        ("c11", c11("*y = 1;"), "4:4", "a parameter of the thread"),
        ("c11", c11("barrier(CLK_LOCAL_MEM_FENCE);"), "4:3", "unexpected `barrier`"),
        ("c11", c11("x = 1;"), "4:3", "`*` before a parameter"),
        ("c11", c11("int r0 = *x * 2;"), "4:15", "unexpected `*`"),
        ("ptx", ptx("tld.weak r0, x"), "4:2", "`tld`"),
        ("ptx", ptx("fence.proxy.alias"), "4:8", "`proxy`"),
        ("ptx", ptx("ld.relaxed.gpu.u64 r0, x"), "4:17", "`u64`"),
        ("ptx", ptx("st.acquire.gpu x, 1"), "4:2", "`st.acquire.gpu`"),
        ("ptx", ptx("ld.relaxed r0, x"), "4:2", "a scope"),
        ("ptx", c11(""), "1:1", "`C`"),
    ];
    for (syntax, text, place, word) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.litmus");
        std::fs::write(&file, &text).unwrap();
        let file = file.to_str().unwrap();
        let ran = Ran::run(&mut vk_litmus(["convert", file, "--from", syntax, "--to", "litmus"]));
        assert_eq!(ran.code, 2, "{text}");
        assert!(
            ran.stderr.contains(&format!(":{place}]")) && ran.stderr.contains(word),
            "{text}: {}",
            ran.stderr
        );
    }
}
