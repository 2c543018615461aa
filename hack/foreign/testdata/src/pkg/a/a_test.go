package a

import "encoding/json"

func inTest() { _ = json.Unmarshal(nil, nil) }
