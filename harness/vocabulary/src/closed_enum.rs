//! Enums that know their variants.

/// Defines enums with `ALL`, the list of the variants, and, if these have names, `name`, `from_name` and
/// `Display`.
///
/// An enum has the traits that every enum without fields can derive, and those that it names.
///
/// ```
/// vocabulary::closed_enum! {
///     pub enum Level {
///         Low = "low",
///         High = "high",
///     }
/// }
/// assert_eq!((Level::ALL.map(Level::name), Level::from_name("high")), (["low", "high"], Some(Level::High)));
/// ```
#[macro_export]
macro_rules! closed_enum {
    (
        @one $(#[$attribute:meta])*
        pub enum $enum:ident { $($(#[$variant_attribute:meta])* $variant:ident,)* }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $(#[$attribute])*
        pub enum $enum { $($(#[$variant_attribute])* $variant,)* }

        impl $enum {
            /// Every variant, in the order of their declaration.
            pub const ALL: [$enum; [$($enum::$variant),*].len()] = [$($enum::$variant),*];
        }
    };
    (
        @one $(#[$attribute:meta])*
        pub enum $enum:ident { $($(#[$variant_attribute:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $crate::closed_enum! {
            @one $(#[$attribute])*
            pub enum $enum { $($(#[$variant_attribute])* $variant,)* }
        }

        impl $enum {
            /// Returns its name in texts, files and reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }

            /// Returns the variant of a name.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|known| known.name() == name)
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
    ($($(#[$attribute:meta])* pub enum $enum:ident { $($variants:tt)* })+) => {
        $($crate::closed_enum! { @one $(#[$attribute])* pub enum $enum { $($variants)* } })+
    };
}
