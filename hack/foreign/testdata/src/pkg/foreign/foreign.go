package foreign

import "encoding/json"

func read() { _ = json.Unmarshal(nil, nil) }
