// See model.h.
#include "cli/models/model.h"

namespace gpupool::cli {

const std::vector<ModelRow>& model_rows() {
  static const std::vector<ModelRow> rows{
      {"pytorch", "PyTorch's caching allocator, as it is by default", make_pytorch},
      {"pytorch_expandable", "PyTorch with expandable_segments:True", make_pytorch_expandable},
      {"paddle_auto_growth", "PaddlePaddle's auto_growth", make_paddle_auto_growth},
  };
  return rows;
}

}  // namespace gpupool::cli
