//! Loops that are compiled several times, for the widest vectors of the processor that they come to run on.

use std::sync::atomic::{AtomicU8, Ordering};

/// What the processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Level {
    Portable = 1,
    Avx2 = 2,
    Avx512 = 3,
}

/// What this processor has, found once.
#[inline]
pub(crate) fn level() -> Level {
    static LEVEL: AtomicU8 = AtomicU8::new(0);
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => {
            let found = find();
            LEVEL.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn find() -> Level {
    use std::arch::is_x86_feature_detected as has;
    if !(has!("avx2") && has!("fma")) {
        Level::Portable
    } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        Level::Avx512
    } else {
        Level::Avx2
    }
}

/// NEON is part of every 64-bit ARM: what is portable is compiled for it.
#[cfg(not(target_arch = "x86_64"))]
fn find() -> Level {
    Level::Portable
}

/// Defines functions whose loops become vectors. They take and give what any function does; the compiler never fuses a
/// product and a sum, so that results are the same at every level.
macro_rules! vectorized {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<const $parameter:ident: $kind:ty>)? ($($argument:ident: $type:ty),* $(,)?)
        $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        $vis fn $name $(<const $parameter: $kind>)? ($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable $(<const $parameter: $kind>)? ($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::network::kernels::vectorized::{Level, level};
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512 $(<const $parameter: $kind>)? ($($argument: $type),*) $(-> $result)? {
                    portable $(::<$parameter>)? ($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2 $(<const $parameter: $kind>)? ($($argument: $type),*) $(-> $result)? {
                    portable $(::<$parameter>)? ($($argument),*)
                }
                match level() {
                    // SAFETY: the processor has these instructions.
                    Level::Avx512 => return unsafe { avx512 $(::<$parameter>)? ($($argument),*) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2 $(::<$parameter>)? ($($argument),*) },
                    Level::Portable => {}
                }
            }
            portable $(::<$parameter>)? ($($argument),*)
        }
    )*};
}

pub(crate) use vectorized;
