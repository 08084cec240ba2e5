//! Amber scripts and tests of vkrunner as input, and `repro --format amber`.

use std::fs;

use crate::common::{Ran, installed, software_drivers, vk_litmus};

/// A module that writes a specialization constant and a push constant to a buffer.
const MODULE: &str = "OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"go\" %id
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %id BuiltIn WorkgroupId
OpDecorate %spec SpecId 3
OpDecorate %array ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %push Block
OpMemberDecorate %push 0 Offset 0
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 2
%void = OpTypeVoid
%type = OpTypeFunction %void
%uint = OpTypeInt 32 0
%uint3 = OpTypeVector %uint 3
%spec = OpSpecConstant %uint 1
%zero = OpConstant %uint 0
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%push = OpTypeStruct %uint
%pointer = OpTypePointer StorageBuffer %block
%pushptr = OpTypePointer PushConstant %push
%pushed = OpTypePointer PushConstant %uint
%inptr = OpTypePointer Input %uint3
%cell = OpTypePointer StorageBuffer %uint
%data = OpVariable %pointer StorageBuffer
%block2 = OpVariable %pushptr PushConstant
%id = OpVariable %inptr Input
%main = OpFunction %void None %type
%label = OpLabel
%ids = OpLoad %uint3 %id
%index = OpCompositeExtract %uint %ids 0
%from = OpAccessChain %pushed %block2 %zero
%value = OpLoad %uint %from
%sum = OpIAdd %uint %value %spec
%at = OpAccessChain %cell %data %zero %index
OpStore %at %sum
OpReturn
OpFunctionEnd
";

/// Returns an Amber script of the module with a pipeline and a command after its dispatch.
fn amber(pipeline: &str, after: &str) -> String {
    format!(
        "#!amber # comment\nDEVICE_EXTENSION VK_KHR_storage_buffer_storage_class\n\
         SHADER compute shader SPIRV-ASM TARGET_ENV spv1.3\n{MODULE}END\n\
         BUFFER data DATA_TYPE uint32 SIZE 4 FILL 7\nBUFFER args DATA_TYPE uint32 DATA 5 END\n\
         BUFFER other DATA_TYPE int32 DATA 15 15 # two\n 7 0x7 END\n\
         PIPELINE compute p\n  ATTACH shader ENTRY_POINT go SPECIALIZE 3 AS uint32 10\n\
         \x20 BIND BUFFER data AS storage DESCRIPTOR_SET 0 BINDING 2\n  BIND BUFFER args AS push_constant\n\
         {pipeline}END\nRUN p 2 1 1\n{after}"
    )
}

fn shader_test(test: &str) -> String {
    format!("[require]\nint64\n\n[compute shader spirv]\n{MODULE}\n[test]\ncompute entrypoint go\n{test}")
}

/// Runs a command with a script that is written to a file.
fn ran(command: &[&str], name: &str, text: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let mut process = vk_litmus(command.iter().copied());
    let ran = Ran::run(process.arg(&path).current_dir(folder.path()));
    let words = ran.stderr.replace(['│', '×'], "");
    Ran { stderr: words.split_whitespace().collect::<Vec<_>>().join(" "), ..ran }
}

#[test]
fn expectations_are_claims_about_final_contents() {
    let run = ["run", "--device", "sim", "--instances", "100"];
    let cases = [
        ("", "EXPECT data IDX 0 EQ 15 15 7 7\nEXPECT data EQ_BUFFER other\nEXPECT data IDX 8 LT 8 GE", 2),
        ("", "EXPECT data IDX 0 EQ 15 15 7 7\nEXPECT data EQ_BUFFER other", 0),
        ("", "EXPECT data IDX 4 GE 15\nEXPECT data IDX 0 NE 14\nEXPECT args IDX 0 EQ 5", 0),
        ("  SUBGROUP shader\n REQUIRED_SIZE 4 END\n", "EXPECT data IDX 0 EQ 16", 1),
        ("", "EXPECT data EQ_BUFFER args", 2),
        ("", "EXPECT data IDX 16 EQ 1", 2),
    ];
    for (pipeline, after, code) in cases {
        let ran = ran(&run, "a.amber", &amber(pipeline, after));
        assert_eq!(ran.code, code, "{after}: {ran:?}");
    }
    let cases = [
        ("ssbo 0:2 subdata uint 0 7 7 7\nuniform uint 0 5\ncompute 2 1 1\nprobe ssbo uint 0:2 0 == 6 6 7", 0),
        (
            "ssbo 0:2 12\npush uint 0 5\ncompute 2 1 1\nprobe ssbo uvec2 0:2 0 == 6 6\nprobe ssbo uint 0:2 8 > 0",
            1,
        ),
    ];
    for (test, code) in cases {
        let ran = ran(&run, "a.shader_test", &shader_test(test));
        assert_eq!(ran.code, code, "{test}: {ran:?}");
    }
    for (command, code) in [("race", 0), ("check", 0), ("lint", 0)] {
        let ran = ran(&[command], "a.amber", &amber("", "EXPECT data IDX 0 EQ 15 15 7 7"));
        assert_eq!(ran.code, code, "{command}: {ran:?}");
    }
    // The grid of the script.
    let ran = ran(&["convert", "--to", "litmus"], "a.amber", &amber("", ""));
    assert!(ran.stdout.contains("| P1@sg 0, wg 1"), "{ran:?}");
}

/// Commands outside the subset are refused by name, with their line; no other file is read.
/// Contents that the model does not list may break an expectation without a fault of the device.
#[test]
fn a_failed_expectation_is_no_violation() {
    if !installed("glslangValidator") {
        return;
    }
    let text = "#!amber
SHADER compute k GLSL
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 1) buffer C { uint w[]; };
void main() { atomicAdd(w[1], 1u); atomicAdd(w[2 + (atomicAdd(w[1], 0u) & 1u)], 1u); }
END
BUFFER c DATA_TYPE uint32 SIZE 4 FILL 0
PIPELINE compute p
  ATTACH k
  BIND BUFFER c AS storage DESCRIPTOR_SET 0 BINDING 1
END
RUN p 4 1 1
EXPECT c IDX 8 EQ 2
";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.amber"), text).unwrap();
    let command =
        |arguments: &[&str]| Ran::run(vk_litmus(arguments.iter().copied()).current_dir(folder.path()));
    let ran =
        command(&["run", "a.amber", "--device", "sim", "--instances", "200", "--seed", "1", "--out", "r"]);
    assert!(ran.code == 1 && ran.words().contains("0 violates"), "{ran:?}");
    for reader in [&["report", "r"][..], &["diff", "r", "r"]] {
        let ran = command(reader);
        assert_eq!(ran.code, 0, "{reader:?}: {ran:?}");
    }
}

#[test]
fn other_commands_are_refused_by_name() {
    let shader = |format: &str| format!("#!amber\nSHADER compute s {format}\n");
    let including = "GLSL\n#version 450\n# /**/ include \"../x\"\nvoid main() {}\nEND\nPIPELINE compute p\nATTACH s\nEND\nRUN p 1 1 1";
    let cases: [(&str, String, &str); 22] = [
        ("a.amber", shader(including), "a.amber:4: `#include` is not supported"),
        ("a.amber", "SHADER".to_owned(), "a.amber:1: no first line `#!amber`"),
        ("a.amber", "#!amber\n".to_owned(), "no RUN; expected one"),
        ("a.amber", "#!amber\nREPEAT 2\n".to_owned(), "a.amber:2: `REPEAT` is not supported"),
        ("a.amber", "#!amber\nSHADER vertex v PASSTHROUGH".to_owned(), "`SHADER vertex` is not supported"),
        ("a.amber", shader("GLSL FILE /etc/passwd"), "a.amber:2: `FILE` is not supported"),
        ("a.amber", shader("GLSL VIRTUAL_FILE ../x"), "no virtual file `../x`"),
        ("a.amber", shader("OPENCL-C"), "`SHADER compute s OPENCL-C` is not supported"),
        ("a.amber", shader("GLSL\nvoid main() {}"), "the end of the script, where END is expected"),
        (
            "a.amber",
            "#!amber\nBUFFER b DATA_TYPE uint8 DATA 256 END".to_owned(),
            "`256` is not a value of the type",
        ),
        (
            "a.amber",
            "#!amber\nBUFFER b DATA_TYPE vec3<float> DATA 1 END".to_owned(),
            "1 values for elements of 3",
        ),
        ("a.amber", "#!amber\nBUFFER b DATA_TYPE uint32 SIZE 99999999999 FILL 1".to_owned(), "more than"),
        (
            "a.amber",
            "#!amber\nBUFFER b FORMAT R8G8B8A8_UNORM".to_owned(),
            "`BUFFER b FORMAT` is not supported",
        ),
        ("a.amber", amber("  BIND SAMPLER s\n", ""), "`BIND SAMPLER` is not supported"),
        ("a.amber", amber("  BIND BUFFER none AS storage\n", ""), "no buffer `none`"),
        (
            "a.amber",
            amber("  BIND BUFFER data AS uniform DESCRIPTOR_SET 0 BINDING 3\n", ""),
            "`BIND BUFFER data AS storage and AS uniform` is not supported",
        ),
        ("a.amber", amber("", "RUN p 1 1 1"), "a second RUN; expected one"),
        ("a.amber", amber("", "EXPECT data IDX x EQ 1"), "`x`, where a number is expected"),
        ("a.shader_test", shader_test("draw rect 0 0 1 1"), "`draw` is not supported"),
        (
            "a.shader_test",
            shader_test("ssbo 0:2 8\ncompute 2 1 1\nssbo 0:2 subdata uint 0 1"),
            "`ssbo after the dispatch` is not supported",
        ),
        ("a.shader_test", shader_test("probe ssbo uint 0:2 0 == 1"), "no `compute` before this probe"),
        ("a.shader_test", "[vertex shader]\n".to_owned(), "`[vertex shader]` is not supported"),
    ];
    for (name, text, expected) in cases {
        let ran = ran(&["race"], name, &text);
        assert_eq!(ran.code, 2, "{text}: {ran:?}");
        let said = ran.stderr.clone() + &ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// A script that `repro` writes counts violations of many instances, and reads back.
#[test]
fn scripts_of_litmus_tests_run_and_are_race_free() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.amber").display().to_string();
    for test in ["mp/MP+rel-acq", "coherence/CoRR+rlx"] {
        let written = Ran::run(&mut vk_litmus(["repro", test, "--format", "amber", "--out", &path]));
        assert_eq!(written.code, 0, "{written:?}");
        for device in software_drivers() {
            let run = ["run", &path, "--device", device, "--instances", "100"];
            let ran = Ran::run(vk_litmus(run).current_dir(folder.path()));
            assert_eq!(ran.code, 0, "{device}: {ran:?}");
        }
    }
    let allowed = Ran::run(&mut vk_litmus(["repro", "sb/SB+rlx-rlx", "--format", "amber", "--out", &path]));
    assert_eq!(allowed.code, 2, "{allowed:?}");
    // A claim that a run of the script breaks is counted.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("{ uint violations", "{ uint spare; uint violations")).unwrap();
    let run = ["run", &path, "--device", "sim", "--instances", "100"];
    let ran = Ran::run(vk_litmus(run).current_dir(folder.path()));
    assert_eq!(ran.code, 1, "{ran:?}");
}
