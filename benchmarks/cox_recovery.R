# Fit the patterns of benchmarks/cox_recovery.py with spatstat: one row of estimates per pattern and method.
# Usage: Rscript benchmarks/cox_recovery.R patterns.csv estimates.csv
suppressPackageStartupMessages(library(spatstat.model))
files <- commandArgs(trailingOnly = TRUE)
points <- read.csv(files[1])
rows <- list()
for (id in unique(points$pattern)) {
  some <- points[points$pattern == id, ]
  pattern <- ppp(some$x, some$y, window = square(1), checkdup = FALSE)
  fits <- list(
    "contrast pcf" = function() lgcp.estpcf(pattern, c(var = 1, scale = 0.1), covmodel = list(model = "exponential"))$par,
    "contrast K" = function() lgcp.estK(pattern, c(var = 1, scale = 0.1), covmodel = list(model = "exponential"))$par,
    "palm" = function() unlist(kppm(pattern ~ 1, "LGCP", method = "palm")$par),
    "composite" = function() unlist(kppm(pattern ~ 1, "LGCP", method = "clik2")$par)
  )
  for (name in names(fits)) {
    par <- tryCatch(suppressWarnings(fits[[name]]()), error = function(e) c(NA, NA))
    rows[[length(rows) + 1]] <- data.frame(
      pattern = id, method = name, variance = par[[1]], scale = par[[2]], mean = log(npoints(pattern)) - par[[1]] / 2
    )
  }
}
result <- do.call(rbind, rows)
attr <- as.character(packageVersion("spatstat.model"))
result$version <- attr
write.csv(result, files[2], row.names = FALSE)
