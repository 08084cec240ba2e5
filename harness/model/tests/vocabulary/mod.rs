//! Names of base sets and relations in tests of the cat front end.

use model::cat::{Membership, Vocabulary};

/// Returns the names in the Vulkan models of other tools.
pub fn vulkan() -> Vocabulary {
    Vocabulary::new()
        .with_sets([
            "IW",
            "R",
            "W",
            "M",
            "F",
            "ATOM",
            "A",
            "RMW",
            "ACQ",
            "REL",
            "CBAR",
            "NONPRIV",
            "PRIV",
            "SG",
            "WG",
            "QF",
            "DV",
            "AV",
            "VIS",
            "SEMAV",
            "SEMVIS",
            "AVDEVICE",
            "VISDEVICE",
        ])
        .with_relations([
            "po", "int", "ext", "ssg", "swg", "sqf", "loc", "vloc", "sref", "rf", "co", "rmw", "addr",
            "data", "ctrl", "syncbar", "ssw",
        ])
        .with_indexed_set("SC", Membership::Any, 4)
        .with_indexed_set("SEM", Membership::All, 4)
        .with_class_names("SEMSC", "SEM", 4)
        .with_rank("rf", 1)
        .with_rank("co", 2)
}
