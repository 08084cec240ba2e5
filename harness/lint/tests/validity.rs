//! The validity rules, each with an instruction that breaks it, compared with `spirv-val`.

use std::fs;
use std::process::Command;

/// The start of a module; `#N` in its code is a constant.
const DECLARATIONS: &str = include_str!("validity.spvasm");
const CODE: &str = "%main = OpFunction %void None %function
%entry = OpLabel
%local = OpVariable %to_local Function
%p = OpAccessChain %to_u %x #0
";
const EXCHANGE: &str = "%l = OpAtomicCompareExchange %u %p #1";

/// Changes of the declarations.
type Edits<'a> = &'a [(&'a str, &'a str)];
const DEVICE: (&str, &str) = ("OpCapability VulkanMemoryModelDeviceScope\n", "");
const GLSL: Edits<'_> =
    &[("OpCapability VulkanMemoryModel\n", ""), DEVICE, ("Logical Vulkan", "Logical GLSL450")];
const FRAGMENT: Edits<'_> = &[("GLCompute", "Fragment"), ("LocalSize 1 1 1", "OriginUpperLeft")];
const COHERENT: Edits<'_> = &[("OpDecorate %block Block", "OpDecorate %block Block\nOpDecorate %x Coherent")];

/// Changes, an instruction, and the end of the name of the rule that it breaks; empty for valid modules.
const CASES: [(Edits<'_>, &str, &str); 38] = [
    (&[], "OpMemoryBarrier #1 #0x48", ""),
    (&[], "OpAtomicStore %p #1 #0x2044 #1", ""),
    (&[], "OpStore %p #1 MakePointerAvailable|NonPrivatePointer #1", ""),
    (&[], "OpControlBarrier #2 #2 #0x108", ""),
    (&[], "#0x44 #0x42 #1 #0", ""),
    (GLSL, "OpMemoryBarrier #1 #0x48", ""),
    (&[], "OpMemoryBarrier #1 #0x4a", "10865"),
    (&[], "OpMemoryBarrier #1 #0x50", "10866"),
    (&[], "OpAtomicStore %p #1 #0x42 #1", "10867"),
    (&[], "%l = OpAtomicLoad %u %p #1 #0x44", "10868"),
    (&[], "OpMemoryBarrier #1 #0", "10869"),
    (&[], "OpAtomicStore %p #1 #4 #1", "10870"),
    (&[], "OpAtomicStore %p #1 #0x40 #1", "10871"),
    (&[], "OpMemoryBarrier #1 #0x2042", "10872"),
    (&[], "OpAtomicStore %p #1 #0x4044 #1", "10873"),
    (&[], "#0x48 #0x44 #1 #0", "10875"),
    (&[], "#0 #0x42 #1 #0", "10876"),
    (&[], "#0x48 #0x142 #1 #0", "10877"),
    (&[], "#0x48 #0x4042 #1 #0", "10878"),
    (&[], "#0x8048 #0x42 #1 #0", "10879"),
    (&[], "OpMemoryBarrier #1 #0x8048", "13551"),
    (&[], "OpControlBarrier #1 #1 #0x48", "04636"),
    (&[], "OpMemoryBarrier #0 #0x48", "04638"),
    (&[], "OpMemoryBarrier #6 #0x48", "04640"),
    (&[], "OpMemoryBarrier #4 #0x48", "04641"),
    (&[], "%l = OpGroupNonUniformElect %bool #2", "04642"),
    (&[], "%l = OpAtomicLoad %u %local #1 #0", "04686"),
    (FRAGMENT, "OpControlBarrier #2 #2 #0x48", "04682"),
    (FRAGMENT, "OpMemoryBarrier #2 #0x48", "07321"),
    (&[], "%l = OpAtomicLoad %u %p %spec #0", "SPIR-V, Scope and Memory Semantics"),
    (&[DEVICE], "OpMemoryBarrier #1 #0x48", "SPIR-V, VulkanMemoryModelDeviceScope"),
    (GLSL, "OpMemoryBarrier #5 #0x48", "SPIR-V, VulkanMemoryModel"),
    (GLSL, "OpMemoryBarrier #1 #0x2048", "SPIR-V, VulkanMemoryModel"),
    (&[], "%l = OpLoad %u %p MakePointerAvailable|NonPrivatePointer #1", "SPIR-V, Memory Operands"),
    (&[], "OpStore %p #1 MakePointerVisible|NonPrivatePointer #1", "SPIR-V, Memory Operands"),
    (&[], "%l = OpLoad %u %p MakePointerVisible #1", "SPIR-V, Memory Operands"),
    (&[], "%l = OpLoad %u %local NonPrivatePointer", "SPIR-V, Memory Operands"),
    (COHERENT, "OpNop", "SPIR-V, Coherent and Volatile"),
];

/// Each rule reports its violation. `spirv-val`, where installed, refuses no module that breaks none; since 2026
/// it refuses the others.
#[test]
fn invalid_modules_break_named_rules() {
    let file = std::env::temp_dir().join(format!("validity-{}.spv", std::process::id()));
    let version = Command::new("spirv-val").arg("--version").output().ok();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let year = text.and_then(|text| text.split_once(" v")?.1.get(..4)?.parse::<u32>().ok());
    if year.is_none() {
        println!("skipped: spirv-val is not installed");
    }
    for (edits, code, rule) in CASES {
        let code = if code.starts_with('#') { format!("{EXCHANGE} {code}") } else { code.to_owned() };
        let head = edits.iter().fold(DECLARATIONS.to_owned(), |text, (from, to)| text.replace(from, to));
        let body = format!("{CODE}{code}\nOpReturn\nOpFunctionEnd\n");
        let numbers = body.split_whitespace().filter_map(|word| word.strip_prefix('#'));
        let numbers: std::collections::BTreeSet<&str> = numbers.collect();
        let constants = numbers.iter().map(|number| format!("%c{number} = OpConstant %u {number}\n"));
        let text = format!("{head}{}{}", constants.collect::<String>(), body.replace('#', "%c"));
        let module = spirv_reader::read_module(text.as_bytes()).unwrap();
        let uses = lint::invalid_uses(&module);
        let names: Vec<&str> = uses.iter().map(|one| one.rule.name()).collect();
        assert_eq!(names.is_empty(), rule.is_empty(), "{code}: {names:?}");
        assert!(rule.is_empty() || names.iter().any(|name| name.ends_with(rule)), "{code}: {names:?}");
        let Some(year) = year else { continue };
        fs::write(&file, module.words().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
            .unwrap();
        let mut command = Command::new("spirv-val");
        let output = command.args(["--target-env", "vulkan1.3"]).arg(&file).output().unwrap();
        let is_valid = output.status.success();
        assert!(is_valid || !rule.is_empty(), "{code}: {output:?}");
        assert!(!is_valid || rule.is_empty() || year < 2026, "{code}: {rule} is accepted");
    }
    // Not every run has written it.
    let _ = fs::remove_file(file);
}
