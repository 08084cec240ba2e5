//! ARM: Mesa's PanVK on the panfrost shim. Debian builds both for arm64 only.

use crate::driver::{CompileMethod, TextSource, Vendor, coded_family};
use crate::line::{CodeOperation, CodePath, LineKind};
use crate::text::{DisassemblerDialect, LineRule, access_rule, kind_by, note_rule, order_rule};

/// Mesa's PanVK.
pub const PANVK: Vendor = Vendor {
    word: "panvk",
    driver: "PanVK",
    driver_id: 20,
    driver_file: "panfrost_icd",
    library: "libvulkan_panfrost.so",
    ways: &[CompileMethod::Shim {
        library: "libpanfrost_noop_drm_shim.so",
        variable: Some("PAN_GPU_ID"),
        names_chips: false,
    }],
    install: "Debian for arm64 alone, on such a machine or under qemu-user: mesa-vulkan-drivers and mesa-drm-shim; the memory \
              model is there from Mesa 26.1",
    settings: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_word: None,
    text_from: TextSource::Properties,
    before_chip: None,
    families: &[
        coded_family("g31", &["7093"], "v7", "7093"),
        coded_family("g52", &["7212"], "v7", "7212"),
        coded_family("g310", &["ac74"], "v10", "ac74"),
        coded_family("g610", &["a867"], "v10", "a867"),
    ],
    dialect: &DIALECT,
    descriptors: None,
};

/// The dialect of its Valhall disassembler.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "valhall",
    rules: RULES,
    constant_addresses: false,
    fillers: &["NOP"],
    registers: &['r', 'u'],
    block: "clause_",
    ..DisassemblerDialect::new("valhall", read_line)
};

const RULES: &[LineRule] = &[
    order_rule("BARRIER", "control barrier"),
    access_rule("LD_PKA", CodeOperation::Load, CodePath::Address),
    access_rule("LOAD", CodeOperation::Load, CodePath::Address),
    access_rule("STORE", CodeOperation::Store, CodePath::Address),
    access_rule("ATOM", CodeOperation::Atomic, CodePath::Address),
    access_rule("LD_TEX", CodeOperation::Load, CodePath::Image),
    LineRule { has: "LEA_", kind: Some(LineKind::Descriptor), words: "" },
    LineRule { has: "BRANCH", kind: Some(LineKind::Jump), words: "" },
    note_rule(".wait", "waits for the numbered slots"),
    note_rule(".slot", "a result in a slot"),
];

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    if text.is_empty() || text == "{" || text == "}" || text.starts_with("ds(") {
        return None;
    }
    Some((text, if text.ends_with(':') { LineKind::Label } else { kind_by(RULES, text) }))
}
