//! Products of matrices, down to the kernels of the `gemm` crate for this processor.
//!
//! A product is `C[m, n] (+)= A[m, k] · B[k, n]`, told as pointers and strides. `m` is the axis that lies contiguous in
//! both `A` and `C`: output channels. `n` and `k` may have any stride, so that `B` can be the pixels of an image as they
//! stand, and a convolution needs no copy of its patches.

use std::sync::OnceLock;

use gemm_common::microkernel::MicroKernelFn;

/// Values that the kernels may read, and ignore, behind a row of `A`: every buffer has so much room at its end.
pub(crate) const OVERREAD: usize = 64;

/// The kernels of one instruction set.
pub(crate) struct Kernels {
    /// By how many vectors of `m` they take, then by how many columns.
    kernels: Vec<MicroKernelFn<f32>>,
    /// Values in a vector, vectors and columns that the largest takes.
    lanes: usize,
    vectors: usize,
    columns: usize,
}

/// `A`, by its contiguous axis `m`.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub at: *const f32,
    /// From one `k` to the next.
    pub k_stride: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Right {
    pub at: *const f32,
    pub k_stride: usize,
    pub n_stride: usize,
}

/// `C`, by its contiguous axis `m`.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    pub at: *mut f32,
    pub n_stride: usize,
    /// Whether the product is added to what is there.
    pub add: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl Kernels {
    /// Those for this processor.
    pub(crate) fn get() -> &'static Kernels {
        static KERNELS: OnceLock<Kernels> = OnceLock::new();
        KERNELS.get_or_init(|| {
            Kernels::choose()
                .into_iter()
                .next()
                .expect("scalar kernels run anywhere")
        })
    }

    /// All that run on this processor, the best first.
    fn choose() -> Vec<Kernels> {
        let mut usable = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                usable.push(Kernels::of(&gemm_f32::microkernel::avx512f::f32::UKR, 16));
            }
            if std::arch::is_x86_feature_detected!("fma") {
                usable.push(Kernels::of(&gemm_f32::microkernel::fma::f32::UKR, 8));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            usable.push(Kernels::of(&gemm_f32::microkernel::neon::f32::UKR, 4));
        }
        usable.push(Kernels::of(&gemm_f32::microkernel::scalar::f32::UKR, 1));
        usable
    }

    fn of<const COLUMNS: usize>(table: &[[MicroKernelFn<f32>; COLUMNS]], lanes: usize) -> Kernels {
        Kernels {
            kernels: table.iter().flatten().copied().collect(),
            lanes,
            vectors: table.len(),
            columns: COLUMNS,
        }
    }

    /// Rows of `m` that one kernel takes at the most.
    pub(crate) fn rows(&self) -> usize {
        self.lanes * self.vectors
    }

    /// `C (+)= A · B`.
    ///
    /// # Safety
    ///
    /// All elements of the three are within buffers of which `C`'s is used by nobody else meanwhile, and `A`'s may be read
    /// for [`OVERREAD`] values beyond its last element.
    #[inline]
    pub(crate) unsafe fn multiply(&self, sizes: Sizes, out: Out, left: Left, right: Right) {
        let Sizes { m, n, k } = sizes;
        let mut row = 0;
        while row < m {
            let rows = (m - row).min(self.rows());
            let kernels = &self.kernels[(rows.div_ceil(self.lanes) - 1) * self.columns..];
            let mut column = 0;
            while column < n {
                let columns = (n - column).min(self.columns);
                // SAFETY: the caller's; offsets stay within the rows and columns that it named, and vectors that reach
                // beyond the last row are read within the room that it promises.
                unsafe {
                    kernels[columns - 1](
                        rows,
                        columns,
                        k,
                        out.at.add(column * out.n_stride + row),
                        left.at.add(row),
                        right.at.add(column * right.n_stride),
                        out.n_stride as isize,
                        1,
                        left.k_stride as isize,
                        right.k_stride as isize,
                        right.n_stride as isize,
                        1.0,
                        1.0,
                        u8::from(out.add),
                        false,
                        false,
                        false,
                        left.at,
                    );
                }
                column += columns;
            }
            row += rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..n).map(|_| next()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn products_are_right_for_all_sizes_and_instruction_sets(
            (m, n, k) in (1usize..150, 1usize..20, 1usize..40),
            (left_gap, right_gap, add) in (0usize..3, 0usize..3, any::<bool>()),
            along_k in any::<bool>(),
        ) {
            let a = values(k * (m + left_gap) + OVERREAD, 1);
            let (k_stride, n_stride) = if along_k { (1, k + right_gap) } else { (n + right_gap, 1) };
            let b = values((k + right_gap) * (n + right_gap) + k + n, 2);
            let start = values(n * m, 3);
            for kernels in Kernels::choose() {
                let mut c = start.clone();
                let out = Out { at: c.as_mut_ptr(), n_stride: m, add };
                let left = Left { at: a.as_ptr(), k_stride: m + left_gap };
                let right = Right { at: b.as_ptr(), k_stride, n_stride };
                // SAFETY: the buffers are as large as their strides make them.
                unsafe { kernels.multiply(Sizes { m, n, k }, out, left, right) };
                for j in 0..n {
                    for i in 0..m {
                        let products = (0..k).map(|l| f64::from(a[l * (m + left_gap) + i]) * f64::from(b[l * k_stride + j * n_stride]));
                        let expected = products.sum::<f64>() + if add { f64::from(start[j * m + i]) } else { 0.0 };
                        prop_assert!((f64::from(c[j * m + i]) - expected).abs() < 1e-5, "{} lanes, {i} {j}: {} {expected}", kernels.lanes, c[j * m + i]);
                    }
                }
            }
        }
    }
}
