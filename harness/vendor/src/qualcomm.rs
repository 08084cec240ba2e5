//! Qualcomm: Turnip, Mesa's driver, on the shim of freedreno; the assembly of its compiler ir3.

use crate::text::{Dialect, LineKind, Operation, Path, Rule, access, kind_by, note, order};
use crate::{TextSource, Vendor, Way, coded};

/// Mesa's Turnip.
pub const TURNIP: Vendor = Vendor {
    word: "turnip",
    driver: "Turnip",
    driver_id: 18,
    driver_file: "freedreno_icd",
    library: "libvulkan_freedreno.so",
    ways: &[Way::Shim {
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
        coded("a618", &["618"], "a6xx", "618"),
        coded("a630", &["630"], "a6xx", "630"),
        coded("a660", &["660"], "a6xx", "660"),
        coded("a702", &["702"], "a7xx", "702"),
        coded("a730", &["730"], "a7xx", "730"),
        coded("a740", &["740"], "a7xx", "740"),
        coded("a750", &["750"], "a7xx", "750"),
        coded("a810", &["810"], "a8xx", "810"),
        coded("a830", &["830"], "a8xx", "830"),
    ],
    dialect: &DIALECT,
    descriptors: None,
};

/// How ir3 writes. Its heading has a hash of the shader, and its end counts instructions: neither is code.
pub const DIALECT: Dialect = Dialect {
    name: "ir3",
    rules: RULES,
    constant_addresses: false,
    fillers: &["nop", "(rpt1)nop", "(rpt2)nop", "(rpt3)nop", "(rpt4)nop", "(rpt5)nop"],
    registers: &['r'],
    named_registers: &[],
    block: "l",
    ..Dialect::new("ir3", read)
};

const RULES: &[Rule] = &[
    order("fence.", "fence"),
    order("ccinv", "drops lines of the texture and storage caches"),
    order("bar.g", "control barrier"),
    order("bar", "control barrier"),
    access("isam", Operation::Load, Path::Address),
    access("ldib", Operation::Load, Path::Address),
    access("stib", Operation::Store, Path::Address),
    access("ldg", Operation::Load, Path::Address),
    access("stg", Operation::Store, Path::Address),
    access("atomic.b", Operation::Atomic, Path::Address),
    access("atomic.g", Operation::Atomic, Path::Address),
    access("atomic.s", Operation::Atomic, Path::Address),
    access("ldl", Operation::Load, Path::Workgroup),
    access("stl", Operation::Store, Path::Workgroup),
    access("atomic", Operation::Atomic, Path::Workgroup),
    Rule { has: "resinfo", kind: Some(LineKind::Descriptor), words: "" },
    Rule { has: "ldc", kind: Some(LineKind::Descriptor), words: "" },
    Rule { has: "jump", kind: Some(LineKind::Jump), words: "" },
    Rule { has: "br ", kind: Some(LineKind::Jump), words: "" },
    note("isam", "through the texture cache"),
    note("fence.g.w", "of writes to memory"),
    note("fence.g.l.r.w", "of reads and writes, to memory and to the workgroup's"),
    note("(sy)", "waits for all loads before it"),
    note("(ss)", "waits until sources are read"),
];

fn read(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    let is_remark = text.starts_with(';') || text.starts_with('@') || text.starts_with("Native code");
    if text.is_empty() || is_remark {
        return None;
    }
    Some((text, if text.ends_with(':') { LineKind::Label } else { kind_by(RULES, text) }))
}
