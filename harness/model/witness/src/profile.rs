//! Versions and readings of the specification text.

/// A version of the memory-model appendix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppendixVersion {
    /// Early 2019 (1.1.98 to 1.1.101).
    Of2019,
    /// Vulkan 1.2.
    Of12,
    Of2024,
    /// 1.3.301 (November 2024) to 1.4.350.
    Of14305,
    /// The newest one, 1.4.360, with the n-th arrival of an invocation at a split barrier meeting the n-th waits.
    Latest,
    /// The same, read literally: the wait that an arrival synchronizes with is unspecified.
    ByLetter,
    /// The newest one, where lanes that have taken different paths in divergent control flow never resume common dynamic instances.
    Apart,
    /// The newest one, where they do so as soon as they reach the same static instruction.
    Together,
}

/// A version of the text, with or without availability and visibility chains (VK-FEAT-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextProfile {
    pub text: AppendixVersion,
    /// `vulkanMemoryModelAvailabilityVisibilityChains`.
    pub chains: bool,
}

impl TextProfile {
    /// The newest text with chains.
    pub const LATEST: TextProfile = TextProfile { text: AppendixVersion::Latest, chains: true };

    pub fn all_profiles() -> impl Iterator<Item = TextProfile> {
        let by_letter = TextProfile { text: AppendixVersion::ByLetter, chains: true };
        [
            AppendixVersion::Latest,
            AppendixVersion::Of14305,
            AppendixVersion::Of2024,
            AppendixVersion::Of12,
            AppendixVersion::Of2019,
        ]
        .into_iter()
        .flat_map(|text| [true, false].map(|chains| TextProfile { text, chains }))
        .chain([by_letter])
    }

    /// Returns the readings of divergent control flow, which only subgroup operations distinguish.
    pub fn divergence_readings() -> impl Iterator<Item = TextProfile> {
        [AppendixVersion::Latest, AppendixVersion::Apart, AppendixVersion::Together]
            .into_iter()
            .map(|text| TextProfile { text, chains: true })
    }

    /// Returns the name of the corresponding model.
    pub fn name(self) -> &'static str {
        match (self.text, self.chains) {
            (AppendixVersion::Latest, true) => "vulkan",
            (AppendixVersion::Latest, false) => "vulkan-nochains",
            (AppendixVersion::ByLetter, _) => "vulkan-by-letter",
            (AppendixVersion::Apart, _) => "vulkan-apart",
            (AppendixVersion::Together, _) => "vulkan-together",
            (AppendixVersion::Of14305, true) => "vulkan-1.4.305",
            (AppendixVersion::Of14305, false) => "vulkan-1.4.305-nochains",
            (AppendixVersion::Of2024, true) => "vulkan-2024",
            (AppendixVersion::Of2024, false) => "vulkan-2024-nochains",
            (AppendixVersion::Of12, true) => "vulkan-1.2",
            (AppendixVersion::Of12, false) => "vulkan-1.2-nochains",
            (AppendixVersion::Of2019, true) => "vulkan-2019",
            (AppendixVersion::Of2019, false) => "vulkan-2019-nochains",
        }
    }

    /// VK-AC-02: the texts since 1.3.298 contain "… earlier than the second operation in the second
    /// operation's scoped modification order **or location order**".
    pub(crate) fn follows_location_order_in_from_reads(self) -> bool {
        self.text >= AppendixVersion::Of14305
    }

    /// VK-SW-12, VK-DOM-07: fragment shader interlock came with 1.2.
    pub(crate) fn has_interlock(self) -> bool {
        self.text >= AppendixVersion::Of12
    }

    /// VK-SCREL-01, VK-SCORD-01 and following, VK-SW-14, VK-DOM-08: shader calls came with 1.2.
    pub(crate) fn has_shader_calls(self) -> bool {
        self.text >= AppendixVersion::Of12
    }

    /// VK-SW-17 and following: split barriers came with 1.4.351.
    pub(crate) fn has_split_barriers(self) -> bool {
        self.text >= AppendixVersion::Latest
    }

    /// VK-SW-22: a wait is of the round of the arrival.
    pub(crate) fn requires_same_round(self) -> bool {
        self.has_split_barriers() && self.text != AppendixVersion::ByLetter
    }

    /// VK-LOC-06, VK-REF-05: block-decorated workgroup variables share one reference since 2024.
    pub(crate) fn workgroup_blocks_share_a_reference(self) -> bool {
        self.text >= AppendixVersion::Of2024
    }
}
