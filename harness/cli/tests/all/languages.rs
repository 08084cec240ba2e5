//! Compares the answers about `ci/languages/idioms` with what the languages promise, and with `results/languages`.

use std::process::Command;

use crate::common::{Ran, installed, vk_litmus};

/// An order that only the compiler lost is a warning of every command.
#[test]
fn a_lost_order_is_a_warning() {
    if !installed("naga") {
        return;
    }
    let shader =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/languages/idioms/buffer-storage-barrier.wgsl");
    for command in ["race", "check"] {
        let ran = Ran::run(&mut vk_litmus([command, shader, "--grid", "1", "--format", "json"]));
        let line = &ran.json_lines()[0];
        assert_eq!((ran.code, &line["findings"][0]["kind"]), (0, &"lost-order".into()), "{ran:?}");
    }
    // A required proof is one of the source, not of the module.
    for (grid, code) in [("1", 0), ("2", 1)] {
        let ran = Ran::run(&mut vk_litmus(["race", shader, "--grid", grid, "--prove"]));
        assert_eq!(ran.code, code, "{ran:?}");
    }
}

#[test]
fn verdicts_by_language_are_those_of_the_promises() {
    if !installed("python3") {
        return;
    }
    let matrix = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/languages/matrix");
    let mut command = Command::new("python3");
    command.args(["-B", matrix, "--check"]).env("VK_LITMUS", env!("CARGO_BIN_EXE_vk-litmus"));
    let ran = command.output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && text.contains("rows compared, 0 differences"), "{text}");
}

/// WGSL: a store of a component accesses the whole vector. HLSL: stores of one value are defined, but the contents that
/// the tool chooses do not make unequal stores equal.
#[test]
fn stores_are_those_of_the_language() {
    if !installed("glslangValidator") || !installed("naga") {
        return;
    }
    let components = |order: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> v: array<vec4<u32>, 4>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) {{
    if (i == 0u) {{ v[1].x = 1u; }}
    {order}
    if (i == 1u) {{ v[1][2u * i] = 2u; }}
}}
"
        )
    };
    let stores = |index: &str| {
        format!(
            "RWStructuredBuffer<uint> a : register(u0);
StructuredBuffer<uint> b : register(t1);
[numthreads(4, 1, 1)] void main(uint3 d : SV_DispatchThreadID) {{ a[0] = b[{index}]; }}
"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    for (file, text, verdict) in [
        ("components.wgsl", components(""), "racy"),
        ("ordered.wgsl", components("storageBarrier();"), "clean"),
        ("elements.hlsl", stores("d.x"), "racy"),
        ("element.hlsl", stores("0"), "clean"),
    ] {
        std::fs::write(folder.path().join(file), text).unwrap();
        let mut command = vk_litmus(["race", file, "--grid", "1", "--format", "json"]);
        let ran = Ran::run(command.current_dir(folder.path()));
        let line = &ran.json_lines()[0];
        assert_eq!(
            (&line["verdict"], &line["language_verdict"]),
            (&verdict.into(), &verdict.into()),
            "{ran:?}"
        );
    }
    // Proofs count equal stores as races.
    let mut command = vk_litmus(["race", "element.hlsl", "--grid", "1", "--prove"]);
    let ran = Ran::run(command.current_dir(folder.path()));
    assert_eq!(ran.code, 3, "{ran:?}");
}
