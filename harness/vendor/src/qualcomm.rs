//! Qualcomm: Mesa's Turnip on the freedreno shim; the assembly of its compiler ir3.

use crate::driver::{CompileMethod, TextSource, Vendor, coded_family};
use crate::line::{CodeOperation, CodePath, LineKind};
use crate::order::{
    MissingOperation, NeedPart, NeedPlace, Order, OrderNeed, number_behind, required_between,
};
use crate::text::{DisassemblerDialect, LineRule, access_rule, kind_by, note_rule, order_rule};

/// Mesa's Turnip.
pub const TURNIP: Vendor = Vendor {
    word: "turnip",
    driver: "Turnip",
    driver_id: 18,
    driver_file: "freedreno_icd",
    library: "libvulkan_freedreno.so",
    ways: &[CompileMethod::Shim {
        library: "libfreedreno_noop_drm_shim.so",
        variable: Some("FD_GPU_ID"),
        names_chips: false,
    }],
    install: "Debian: mesa-vulkan-drivers and mesa-drm-shim, from Mesa 26.1 on amd64",
    settings: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_word: None,
    text_from: TextSource::Properties,
    before_chip: None,
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
    prepare: until_end,
    rules: RULES,
    constant_addresses: false,
    places: resource_numbers,
    needs: NEEDS,
    fillers: &["nop", "(rpt1)nop", "(rpt2)nop", "(rpt3)nop", "(rpt4)nop", "(rpt5)nop"],
    registers: &['r'],
    named_registers: &[],
    block: "l",
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
    LineRule { has: "resinfo", kind: Some(LineKind::Descriptor), words: "" },
    LineRule { has: "ldc", kind: Some(LineKind::Descriptor), words: "" },
    LineRule { has: "jump", kind: Some(LineKind::Jump), words: "" },
    LineRule { has: "br ", kind: Some(LineKind::Jump), words: "" },
    note_rule("isam", "through the texture cache"),
    note_rule("fence.g.w", "of writes to memory"),
    note_rule("fence.g.l.r.w", "of reads and writes, to memory and to the workgroup's"),
    note_rule("(sy)", "waits for all loads before it"),
    note_rule("(ss)", "waits until sources are read"),
];

/// The barriers that Mesa emits. Loads through the texture path have a separate cache, and no source states
/// the effect of a fence on it.
const SOURCE: &str = "Mesa, src/freedreno/ir3/ir3_compiler_nir.c, emit_intrinsic_barrier";
const ALL: &[CodeOperation] = &[CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic];
const FENCE: NeedPart = required_between(&["fence.g"], "fence");
const NO_TEXTURE: NeedPart = NeedPart {
    place: NeedPlace::NotOnEither,
    any: &["isam"],
    perhaps: &[],
    without: MissingOperation::Unknown,
    words: "loads past the texture cache",
};
const NEEDS: &[OrderNeed] = &[
    OrderNeed {
        order: Order::Acquire,
        first: ALL,
        targets: &["a7xx", "a8xx"],
        steps: &[
            FENCE,
            NeedPart {
                place: NeedPlace::Between,
                any: &["ccinv"],
                perhaps: &[],
                without: MissingOperation::Weakened,
                words: "invalidation of the caches",
            },
            NO_TEXTURE,
        ],
        source: SOURCE,
    },
    OrderNeed {
        order: Order::Acquire,
        first: ALL,
        targets: &[],
        steps: &[FENCE, NO_TEXTURE],
        source: SOURCE,
    },
    OrderNeed { order: Order::Release, first: ALL, targets: &[], steps: &[FENCE], source: SOURCE },
];

/// Returns the resource number: `t#2` of a texture, else the last operand of an access if it is a constant.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let last = |line: &str| line.rsplit(", ").next().and_then(|word| word.trim().parse().ok());
    let place = |line: &&str| match read_line(line)? {
        (_, LineKind::Access(_)) => number_behind(line, "t#").or_else(|| last(line)),
        _ => None,
    };
    lines.iter().map(place).collect()
}

/// Returns the text up to the end of the shader; the rest is padding for the instruction fetch.
fn until_end(text: &str) -> String {
    let mut part = String::new();
    for line in text.lines() {
        part.push_str(line);
        part.push('\n');
        if line.trim() == "end" {
            break;
        }
    }
    part
}

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    let is_remark = text.starts_with(';') || text.starts_with('@') || text.starts_with("Native code");
    if text.is_empty() || is_remark {
        return None;
    }
    Some((text, if text.ends_with(':') { LineKind::Label } else { kind_by(RULES, text) }))
}
