//! Qualcomm: Mesa's Turnip on the freedreno shim; the assembly of its compiler ir3.

use crate::driver::{CompileMethod, TextSource, Vendor, coded_family};
use crate::line::{CodeOperation, CodePath, LineKind};
use crate::order::{
    MissingOperation, Order, OrderRequirement, RequirementPart, RequirementPosition, number_after,
    required_between,
};
use crate::text::{DisassemblerDialect, LineRule, access_rule, classify_line, note_rule, order_rule};

/// Mesa's Turnip.
pub const TURNIP: Vendor = Vendor {
    selector_prefix: "turnip",
    display_name: "Turnip",
    driver_id: 18,
    driver_file_prefix: "freedreno_icd",
    library: "libvulkan_freedreno.so",
    compile_methods: &[CompileMethod::Shim {
        library: "libfreedreno_noop_drm_shim.so",
        variable: Some("FD_GPU_ID"),
        has_chip_names: false,
    }],
    install: "Debian: mesa-vulkan-drivers and mesa-drm-shim, from Mesa 26.1 on amd64",
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: None,
    text_source: TextSource::Properties,
    chip_prefix: None,
    families: &[
        coded_family("a618", &["618"], "a6xx", "618"),
        coded_family("a630", &["630"], "a6xx", "630"),
        coded_family("a660", &["660"], "a6xx", "660"),
        coded_family("a702", &["702"], "a7xx", "702"),
        coded_family("a730", &["730"], "a7xx", "730"),
        coded_family("a740", &["740"], "a7xx", "740"),
        coded_family("a750", &["750"], "a7xx", "750"),
        coded_family("a810", &["810"], "a8xx", "810"),
        coded_family("a830", &["830"], "a8xx", "830"),
    ],
    dialect: &DIALECT,
    descriptors: None,
};

/// The dialect of ir3. Its heading contains a hash of the shader, and its end counts instructions: neither is
/// code.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "ir3",
    preprocess: truncate_at_end,
    rules: RULES,
    has_constant_addresses: false,
    resource_numbers,
    order_requirements: ORDER_REQUIREMENTS,
    fillers: &["nop", "(rpt1)nop", "(rpt2)nop", "(rpt3)nop", "(rpt4)nop", "(rpt5)nop"],
    register_prefixes: &['r'],
    named_registers: &[],
    block_prefix: "l",
    ..DisassemblerDialect::new("ir3", read_line)
};

const RULES: &[LineRule] = &[
    order_rule("fence.", "fence"),
    order_rule("ccinv", "drops lines of the texture and storage caches"),
    order_rule("bar.g", "control barrier"),
    order_rule("bar", "control barrier"),
    access_rule("isam", CodeOperation::Load, CodePath::Address),
    access_rule("ldib", CodeOperation::Load, CodePath::Address),
    access_rule("stib", CodeOperation::Store, CodePath::Address),
    access_rule("ldg", CodeOperation::Load, CodePath::Address),
    access_rule("stg", CodeOperation::Store, CodePath::Address),
    access_rule("atomic.b", CodeOperation::Atomic, CodePath::Address),
    access_rule("atomic.g", CodeOperation::Atomic, CodePath::Address),
    access_rule("atomic.s", CodeOperation::Atomic, CodePath::Address),
    access_rule("ldl", CodeOperation::Load, CodePath::Workgroup),
    access_rule("stl", CodeOperation::Store, CodePath::Workgroup),
    access_rule("atomic", CodeOperation::Atomic, CodePath::Workgroup),
    LineRule { pattern: "resinfo", kind: Some(LineKind::Descriptor), description: "" },
    LineRule { pattern: "ldc", kind: Some(LineKind::Descriptor), description: "" },
    LineRule { pattern: "jump", kind: Some(LineKind::Jump), description: "" },
    LineRule { pattern: "br ", kind: Some(LineKind::Jump), description: "" },
    note_rule("isam", "through the texture cache"),
    note_rule("fence.g.w", "of writes to memory"),
    note_rule("fence.g.l.r.w", "of reads and writes, to memory and to the workgroup's"),
    note_rule("(sy)", "waits for all loads before it"),
    note_rule("(ss)", "waits until sources are read"),
];

/// The barriers that Mesa emits. Loads through the texture path have a separate cache, and no source states
/// the effect of a fence on it.
const SOURCE: &str = "Mesa, src/freedreno/ir3/ir3_compiler_nir.c, emit_intrinsic_barrier";
const ANY_OPERATION: &[CodeOperation] = &[CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic];
const FENCE: RequirementPart = required_between(&["fence.g"], "fence");
const NO_TEXTURE_LOAD: RequirementPart = RequirementPart {
    place: RequirementPosition::OnNeither,
    alternatives: &["isam"],
    uncertain_alternatives: &[],
    if_missing: MissingOperation::Unknown,
    description: "loads past the texture cache",
};
const ORDER_REQUIREMENTS: &[OrderRequirement] = &[
    OrderRequirement {
        order: Order::Acquire,
        first_operations: ANY_OPERATION,
        targets: &["a7xx", "a8xx"],
        steps: &[
            FENCE,
            RequirementPart {
                place: RequirementPosition::Between,
                alternatives: &["ccinv"],
                uncertain_alternatives: &[],
                if_missing: MissingOperation::Weakened,
                description: "invalidation of the caches",
            },
            NO_TEXTURE_LOAD,
        ],
        source: SOURCE,
    },
    OrderRequirement {
        order: Order::Acquire,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: &[FENCE, NO_TEXTURE_LOAD],
        source: SOURCE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: &[FENCE],
        source: SOURCE,
    },
];

/// Returns the resource number: `t#2` of a texture, else the last operand of an access if it is a constant.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let last_operand = |line: &str| line.rsplit(", ").next().and_then(|word| word.trim().parse().ok());
    let resource_number = |line: &&str| match read_line(line)? {
        (_, LineKind::Access(_)) => number_after(line, "t#").or_else(|| last_operand(line)),
        _ => None,
    };
    lines.iter().map(resource_number).collect()
}

/// Returns the text up to the end of the shader; the rest is padding for the instruction fetch.
fn truncate_at_end(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        code.push_str(line);
        code.push('\n');
        if line.trim() == "end" {
            break;
        }
    }
    code
}

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    let is_heading = text.starts_with(';') || text.starts_with('@') || text.starts_with("Native code");
    if text.is_empty() || is_heading {
        return None;
    }
    Some((text, if text.ends_with(':') { LineKind::Label } else { classify_line(RULES, text) }))
}
